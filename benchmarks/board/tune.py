#!/usr/bin/env python3
"""Searches for options of the board's rows and keeps them in a file for run.py --options=tuned --cache=FILE.

    tune.py --cache=FILE [--rows=2,10] [--device=cuda|cpu] [--seconds=60] [--generations=4] [--population=8]

Runs 'tensorc tune' for one row after the other. Each candidate is compared with the interpreter, so a row may take the
time that the interpreter needs for it: minutes for matrix products of a thousand rows. What is found is kept when the
search is stopped. Ends with 1 if a row's search fails.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from engine import default_library
from run import chosen


def default_tool():
    """Beside the library, as a build and a bundle have it."""
    return default_library().parent / "tensorc"


def command_of(row, file, arguments):
    def listed(values):
        return ",".join(f"{name}={value}" for name, value in values.items())

    command = [str(arguments.tool), "tune", str(file), f"--entry={row.entry}", f"--sizes={listed(row.sizes())}",
               f"--backend={arguments.device}", f"--cache={arguments.cache}", f"--time_limit={arguments.seconds:g}",
               f"--generations={arguments.generations}", f"--population={arguments.population}"]
    return command + ([f"--scalars={listed(row.scalar_values())}"] if row.scalars else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", required=True, help="file to keep what is found in, made if it does not exist")
    parser.add_argument("--rows", default="", help="as those of run.py")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--seconds", type=float, default=60, help="for the search of a row")
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--population", type=int, default=8)
    parser.add_argument("--tool", default="", help="tensorc; default: beside libtensorc.so")
    arguments = parser.parse_args()
    arguments.tool = pathlib.Path(arguments.tool or default_tool())
    libraries = arguments.tool.parent / "lib"  # of a bundle
    paths = [str(libraries)] * libraries.is_dir() + [os.environ.get("LD_LIBRARY_PATH", "")]
    environment = os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, paths))}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in chosen(arguments, arguments.device):
            print(f"# {row.title}", flush=True)
            if row.refused:
                print(row.refused)
                continue
            file = pathlib.Path(folder) / (row.file or row.entry + ".tc")
            file.write_text(row.source, encoding="utf-8")
            failed += subprocess.run(command_of(row, file, arguments), env=environment, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
