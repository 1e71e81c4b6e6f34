"""What scripts/setup says on systems that the sources do not build on."""
import os
import subprocess

import pytest

from pages import ROOT

SYSTEMS = {
    "debian 13": ("With the Halide 19 and LLVM 19 of Debian 13 the tool and the library build by hand: see docs/install.md.", {"libhalide19-dev", "llvm-19-dev", "clang-19"}),
    "ubuntu 24.04": ("Ubuntu 24.04 has Halide 17 built with LLVM 18; 14 with 14, or 19 with 19, is needed.",
                     {"libhalide17-1-dev", "llvm-18-dev", "clang-16"}),
    "ubuntu 22.04": ("Ubuntu 22.04 has Halide 13, LLVM 13 and CMake 3.22; Halide 14, LLVM 14 and CMake 3.25 are needed.",
                     {"libhalide13-0-dev", "llvm-13-dev"}),
    "fedora 43": ("To build on another Linux, install:", {"libhalide14-0-dev", "llvm-14-dev", "clang-16"}),
}


def setup_on(system, tmp_path):
    name, version = system.split()
    (tmp_path / "os-release").write_text(f'ID={name}\nVERSION_ID="{version}"\n')
    return subprocess.run([ROOT / "scripts/setup"], capture_output=True, text=True,
                          env={**os.environ, "TC_OS_RELEASE": str(tmp_path / "os-release")})


@pytest.mark.parametrize("system", SYSTEMS)
def test_setup_says_what_stops_a_build(system, tmp_path):
    sentence, packages = SYSTEMS[system]
    done = setup_on(system, tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert sentence in done.stderr
    assert packages <= set(done.stderr.split()) and {"libisl-dev", "ninja-build"} <= set(done.stderr.split())
    assert ("libhalide14-0-dev" in done.stderr) == (system == "fedora 43")


def test_setup_knows_a_system_without_a_name(tmp_path):
    done = subprocess.run([ROOT / "scripts/setup"], capture_output=True, text=True,
                          env={**os.environ, "TC_OS_RELEASE": str(tmp_path / "none")})
    assert done.returncode == 1 and "the scripts and tests are for Debian 12" in done.stderr
