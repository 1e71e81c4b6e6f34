#!/usr/bin/env python3
"""Searches for options of the board's rows and keeps them in a file for run.py --options=tuned --cache=FILE.

    tune.py --cache=FILE [--rows=2,10] [--device=cuda|cpu] [--jobs=N] [--seconds=60] [--limit=S] [--generations=4]
            [--population=8]

Runs 'tensorc tune' for each row, several at once: they take turns to measure, and compile and compute what is right
side by side. Each candidate is compared with the interpreter, so a row may take the time that the interpreter needs for
it: a minute for 5·10⁸ instances. Ctrl-C ends all searches; what is found is kept. Ends with 1 if a row's search fails.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from engine import default_library
from prepare import longest_first, threads_of
from run import chosen
from searches import Searches


def default_tool():
    """Beside the library, as a build and a bundle have it."""
    return default_library().parent / "tensorc"


def environment_of(tool):
    """With a bundle's libraries, where the tool is one's."""
    libraries = pathlib.Path(tool).parent / "lib"
    paths = [str(libraries)] * libraries.is_dir() + [os.environ.get("LD_LIBRARY_PATH", "")]
    return os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, paths))}


def options_file(file):
    """Beside a row's program, for what its results mean."""
    return file.with_suffix(".options")


def command_of(row, file, seconds, arguments):

    def listed(values):
        return ",".join(f"{name}={value}" for name, value in values.items())

    command = [str(arguments.tool), "tune", str(file), f"--entry={row.entry}", f"--sizes={listed(row.sizes())}",
               f"--backend={arguments.device}", f"--cache={arguments.cache}", f"--time_limit={int(seconds)}",
               f"--generations={arguments.generations}", f"--population={arguments.population}",
               f"--threads={threads_of(arguments.jobs)}"]
    if row.mapping and arguments.device == "cuda":
        command.append(f"--options={options_file(file)}")
    return command + ([f"--scalars={listed(row.scalar_values())}"] if row.scalars else [])


def search(searches, row, file, environment, end, arguments):
    """Prints what 'tensorc tune' says of a row, but for its progress, when it has ended. Whether it went well."""
    seconds, text, code = min(arguments.seconds, end - time.monotonic()), row.refused, 0
    if not text and seconds < 1:
        text, code = "not searched: the time is over", 1
    elif not text:
        file.write_text(row.source, encoding="utf-8")
        options_file(file).write_text(row.mapping, encoding="utf-8")
        done = searches.run(command_of(row, file, seconds, arguments),
                            env=environment,
                            stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
        if done is None:
            return False
        said = done.stdout.strip().splitlines()
        text, code = "\n".join(line for line in said if not line.endswith(" s left")), done.returncode
    # In one piece, as other searches print too.
    sys.stdout.write(f"# {row.title}\n{text}\n")
    sys.stdout.flush()
    return code == 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", required=True, help="file to keep what is found in, made if it does not exist")
    parser.add_argument("--rows", default="", help="as those of run.py")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--jobs", type=int, default=0, help="searches at once; default: 8 for a GPU, 1 for the CPU")
    parser.add_argument("--seconds", type=float, default=60, help="for the search of a row")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which all searches are ended")
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--population", type=int, default=8)
    parser.add_argument("--tool", default="", help="tensorc; default: beside libtensorc.so")
    arguments = parser.parse_args()
    arguments.tool = pathlib.Path(arguments.tool or default_tool())
    arguments.jobs = arguments.jobs or (8 if arguments.device == "cuda" else 1)
    return arguments


def main():
    arguments = parse()
    environment = environment_of(arguments.tool)
    rows, end = longest_first(chosen(arguments, arguments.device)), time.monotonic() + arguments.limit
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"{place}.tc" for place in range(len(rows))]
        with Searches(arguments.jobs) as searches:
            well = list(
                searches.map(lambda row, file: search(searches, row, file, environment, end, arguments), rows, files))
    return 0 if all(well) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("tune.py: stopped; what was found is kept")
