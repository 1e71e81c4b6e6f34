#!/usr/bin/env python3
"""What two builds of tensorc make of the board's rows for a GPU: loads and their widths in PTX, registers, bytes of
machine code. It needs NVRTC, and no GPU.

    compare_code.py OLD_TENSORC NEW_TENSORC [--rows=7,19] [--arch=sm_90a]

Prints a line for each kernel that differs, and how many do not. board/run.py times the same rows.
"""
import argparse
import collections
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "board"))
import rows as board  # noqa: E402

LOAD = re.compile(r"\bld\.(?:volatile\.)?global\S*|cp\.async\S*global")


def kernels_of_cubin(cubin):
    """Bytes of machine code and registers of each kernel of an ELF image."""
    offset, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQII", cubin, offset + i * size) for i in range(count)]
    text = {}
    for section in sections:
        begin = sections[names][4] + section[0]
        name = cubin[begin:cubin.index(b"\0", begin)].decode()
        if name.startswith(".text."):
            text[name[len(".text."):]] = (section[5], section[7] >> 24)
    return text


def emit(tool, row, stage, arch):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "row.tc"
        source.write_text(row.source, encoding="utf-8")
        command = [tool, "emit", str(source), f"--entry={row.entry}", f"--stage={stage}", f"--arch={arch}",
                   "--backend=cuda", "--sizes=" + ",".join(f"{k}={v}" for k, v in row.sizes().items())]
        if row.scalar_values():
            command.append("--scalars=" + ",".join(f"{k}={v}" for k, v in row.scalar_values().items()))
        return subprocess.run(command, check=True, capture_output=True).stdout


def facts(tool, row, arch):
    """Of each kernel: loads by kind, registers, bytes of code."""
    ptx = emit(tool, row, "ptx", arch).decode()
    code = kernels_of_cubin(emit(tool, row, "cubin", arch))
    result = {}
    for part in ptx.split(".entry ")[1:]:
        name = re.match(r"\w+", part)[0]
        size, registers = code[name]
        loads = collections.Counter(LOAD.findall(part))
        text = ", ".join(f"{count} {load}" for load, count in sorted(loads.items())) or "no loads"
        result[name] = (text, registers, size)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rows", default="", help="numbers of rows, by commas; default: all")
    parser.add_argument("--arch", default="sm_90a")
    arguments = parser.parse_args()
    wanted = set(filter(None, arguments.rows.split(",")))
    same = 0
    print("| row | kernel | registers | bytes | loads |\n|---|---|---|---|---|")
    for entry in board.GPU:
        row = entry.row()
        if row.refused or (wanted and row.number not in wanted):
            continue
        try:
            old, new = (facts(tool, row, arguments.arch) for tool in (arguments.old, arguments.new))
        except subprocess.CalledProcessError as fault:
            print(f"| {row.title} | {fault.stderr.decode().splitlines()[0]} | | | |", flush=True)
            continue
        for name in old.keys() | new.keys():
            if old.get(name) == new.get(name):
                same += 1
                continue
            a, b = old.get(name, ("none", 0, 0)), new.get(name, ("none", 0, 0))
            loads = a[0] if a[0] == b[0] else f"{a[0]} → {b[0]}"
            print(f"| {row.title} | {name} | {a[1]} → {b[1]} | {a[2]} → {b[2]} | {loads} |", flush=True)
    print(f"\n{same} kernels are the same.")


if __name__ == "__main__":
    main()
