"""Asks the compiler for the ranges that it infers, through the program ranges_worker."""

import subprocess
from dataclasses import dataclass, field


@dataclass
class Reply:
    """What the compiler says of one def at one point: ranges and extents, or an error."""

    error: str | None = None
    is_fault: bool = False
    statements: list = field(default_factory=list)  # (tensor, {index: (begin, end)})
    extents: dict = field(default_factory=dict)


def numbers_text(numbers):
    return ",".join(f"{name}={value}" for name, value in numbers.items()) or "-"


class Worker:
    """A process that compiles. One that dies is replaced by the next call of define()."""

    def __init__(self, path):
        self.path, self.process = path, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, request):
        try:
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
            line = self.process.stdout.readline().decode()
        except BrokenPipeError:
            line = ""
        if not line:
            self.stop()
            return ["fault", "the compiler's process has ended"]
        return line.rstrip("\n").split("\t")

    def define(self, name, text):
        """Hands over a def. Returns None, or the error of the text."""
        if not self.process:
            self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.defined = (name, text)
        answer = self.ask(f"def {name} {len(text.encode())}\n{text}")
        return None if answer[0] == "ok" else answer[1]

    def at(self, sizes, scalars):
        """The reply for the def handed over last."""
        if not self.process:
            self.define(*self.defined)
        answer = self.ask(f"at {numbers_text(sizes)} {numbers_text(scalars)}\n")
        if answer[0] != "ok":
            return Reply(answer[1], answer[0] == "fault")
        reply = Reply()
        for item in answer[1:]:
            kind, name, *rest = item.split(" ")
            if kind == "E":
                reply.extents[name] = tuple(int(n) for n in rest)
                continue
            ranges = {}
            for text in rest:
                index, _, interval = text.partition("=")
                begin, _, end = interval.partition(":")
                ranges[index] = (int(begin), int(end))
            reply.statements.append((name, ranges))
        return reply
