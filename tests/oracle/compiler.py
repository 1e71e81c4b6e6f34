"""The compiler at work on a program: the process oracle_worker, or the command tensorc."""
from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import program as p


@dataclass(frozen=True)
class Case:
    """How a program is run: the backend, its options as text, and what they are called in reports."""
    backend: str
    options: str = ""
    label: str = "default options"

    def __str__(self) -> str:
        return f"{self.backend}, {self.label}"


@dataclass(frozen=True)
class Outcome:
    """`kind` is ok, refused, budget, internal, run, crash or timeout; `text` says more unless it is ok."""
    kind: str
    text: str = ""
    results: dict | None = None


def scalar_text(value) -> str:
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def environment(path: str) -> dict[str, str]:
    """In a bundle (benchmarks/bundle) the libraries of a program lie beside it."""
    beside = Path(path).resolve().parent / "lib"
    found = os.environ.get("LD_LIBRARY_PATH", "")
    return {**os.environ, **({"LD_LIBRARY_PATH": f"{beside}:{found}".rstrip(":")} if beside.is_dir() else {})}


class Worker:
    """A process that compiles and runs one program after the other. One that dies, or that takes too long, is started
    anew, at the cost of the program that it had."""

    def __init__(self, path: str, limit_s: float = 60.0):
        self.path = path
        self.limit_s = limit_s
        self.process: subprocess.Popen | None = None
        self.errors = None

    def start(self) -> None:
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        env=environment(self.path))

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.errors.close()
            self.process = None

    def run(self, program: p.Program, data: dict[str, np.ndarray], case: Case) -> Outcome:
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(self.request(program, data, case))
            self.process.stdin.flush()
            outcome = self.answer(program, time.monotonic() + self.limit_s)
            if case.backend == "cuda" and outcome.kind in ("run", "internal"):
                self.stop()  # a kernel's fault can cost the process its GPU
            return outcome
        except (BrokenPipeError, EOFError):
            return self.crashed()
        except TimeoutError:
            self.stop()
            return Outcome("timeout", f"no result after {self.limit_s:.0f} s")

    def request(self, program: p.Program, data: dict[str, np.ndarray], case: Case) -> bytes:
        text, options = program.text().encode(), case.options.encode()
        inputs, results = program.inputs(), program.results()
        limit_ms = int(self.limit_s * 500)
        parts = [f"run {case.backend} {limit_ms} {len(text)} {len(options)} {len(program.scalars)} {len(inputs)} "
                 f"{len(results)}\n".encode(), text, options]
        for name, (_, value) in program.scalars.items():
            parts.append(f"{name} {scalar_text(value)}\n".encode())
        for tensor in inputs + results:
            array = np.ascontiguousarray(data[tensor.name])
            extents = "".join(f" {e}" for e in program.shape(tensor.name))
            parts.append(f"{tensor.type} {len(tensor.extents)}{extents} {array.nbytes}\n".encode())
            parts.append(array.tobytes())
        return b"".join(parts)

    def answer(self, program: p.Program, deadline: float) -> Outcome:
        kind, size = self.read_line(deadline).split()
        payload = self.read(int(size), deadline)
        if kind != "ok":
            return Outcome(kind, payload.decode(errors="replace"))
        results, at = {}, 0
        for tensor in program.results():
            shape = program.shape(tensor.name)
            type = np.dtype(tensor.type)
            count = int(np.prod(shape))
            results[tensor.name] = np.frombuffer(payload, type, count, at).reshape(shape)
            at += count * type.itemsize
        return Outcome("ok", "", results)

    def read_line(self, deadline: float) -> str:
        line = b""
        while not line.endswith(b"\n"):
            line += self.read(1, deadline)
        return line.decode()

    def read(self, count: int, deadline: float) -> bytes:
        parts, left = [], count
        out = self.process.stdout.fileno()
        while left:
            ready, _, _ = select.select([out], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            part = os.read(out, left)
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def crashed(self) -> Outcome:
        code = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read()[-2000:].decode(errors="replace")
        self.stop()
        how = f"the process dies of {signal.Signals(-code).name}" if code < 0 else f"the process ends with {code}"
        return Outcome("crash", f"{how}\n{said}".strip())


class Command:
    """`tensorc run`, with tensors in files: slower, but just what a user would type."""

    def __init__(self, path: str, limit_s: float = 60.0):
        self.path = path
        self.limit_s = limit_s

    def stop(self) -> None:
        pass

    def run(self, program: p.Program, data: dict[str, np.ndarray], case: Case) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            arguments = write_case(Path(folder), program, data, case)
            try:
                done = subprocess.run([str(Path(self.path).resolve()), *arguments], cwd=folder, capture_output=True, text=True,
                                      timeout=self.limit_s, env=environment(self.path))
            except subprocess.TimeoutExpired:
                return Outcome("timeout", f"no result after {self.limit_s:.0f} s")
            if done.returncode < 0:
                return Outcome("crash", f"the process dies of {signal.Signals(-done.returncode).name}\n{done.stderr}")
            if done.returncode:
                kind = "internal" if "internal error" in done.stderr else "refused"
                return Outcome(kind, done.stderr)
            return Outcome("ok", "", {t.name: np.load(Path(folder) / "out" / f"{t.name}.npy") for t in program.results()})


def write_case(folder: Path, program: p.Program, data: dict[str, np.ndarray], case: Case) -> list[str]:
    """Writes program.tc, tensors and options to a folder; the arguments of tensorc that run it there."""
    (folder / "program.tc").write_text(program.text())
    given = [t.name for t in program.inputs() + program.results()]
    for name in given:
        np.save(folder / f"{name}.npy", data[name])
    arguments = ["run", "program.tc", f"--backend={case.backend}", "--output_dir=out",
                 "--inputs=" + ",".join(f"{name}={name}.npy" for name in given)]
    if program.scalars:
        arguments.append("--scalars=" + ",".join(f"{n}={scalar_text(v)}" for n, (_, v) in program.scalars.items()))
    if case.options and case.backend != "interp":
        (folder / "options.txt").write_text(case.options)
        arguments.append("--options=options.txt")
    (folder / "out").mkdir(exist_ok=True)
    return arguments
