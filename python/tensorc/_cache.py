"""Files of kernels: what `tensorc.Cache` is."""
from __future__ import annotations

import dataclasses
import os


@dataclasses.dataclass(frozen=True)
class Cache:
    """A file of compiled kernels and measured times, made if it does not exist.

    It is asked before anything is compiled, and gets what has been compiled. Options that are left to the compiler mean
    the fastest that the file knows for the shape and device. `nearest`: where it knows none, those of the nearest
    shape, proved legal for this one. `keep_text`: CUDA text is kept too. `production`: nothing is ever compiled, and a
    shape that the file does not know is an error; neither LLVM nor NVRTC is used. Processes may share a file. What is
    wrong with it is a RuntimeWarning, as long as work can go on; a file that cannot be opened at all is an Error.

    >>> tensorc.define("def f(float(N) x) -> (y) { y(i) = x(i) }", cache=tensorc.Cache("kernels.db", nearest=True))
    <tensorc.Program of f>
    """
    path: str | os.PathLike[str]
    read_only: bool = False
    nearest: bool = False
    keep_text: bool = False
    production: bool = False


def path_of(file: Cache | str | os.PathLike[str]) -> str:
    """Raises ValueError for what is no path: the system's calls would end it at a null character."""
    path = os.fsdecode(file.path if isinstance(file, Cache) else file)
    if "\0" in path:
        raise ValueError(f"null character in the path {path!r}")
    path.encode()
    return path
