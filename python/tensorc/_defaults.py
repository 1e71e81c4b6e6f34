"""Settings of a process: what `tensorc.defaults` is."""
from __future__ import annotations

import os

from ._cache import Cache, path_of

_VARIABLE = "TENSORC_CACHE"


class Defaults:
    """What is used where a call does not say it.

    `cache` is a file of kernels, by its path or as a Cache, for define(), compile(), tune(), kernel() and operators of
    PyTorch. It is None at first. The environment variable TENSORC_CACHE gives it a path, whose folder is made. A call
    with `cache=""` uses none.

    >>> tensorc.defaults.cache = "kernels.tcc"
    >>> program = tensorc.define("def f(float(N) x) -> (y) { y(i) = x(i) }")  # asks kernels.tcc
    >>> tensorc.defaults.cache = None
    """

    __slots__ = ("_cache", "_is_set")

    def __init__(self) -> None:
        self._cache: Cache | str | os.PathLike[str] | None = None
        self._is_set = False

    @property
    def cache(self) -> Cache | str | os.PathLike[str] | None:
        """The file of kernels that is used where a call names none; None: no file."""
        if self._is_set:
            return self._cache
        return os.path.expanduser(os.environ.get(_VARIABLE, "")) or None

    @cache.setter
    def cache(self, value: Cache | str | os.PathLike[str] | None) -> None:
        if value is not None and not isinstance(value, (str, os.PathLike, Cache)):
            raise TypeError(f"'cache' takes a path, a Cache or None, not {value!r}")
        if value is not None:
            path_of(value)
        self._cache, self._is_set = value, True

    def __repr__(self) -> str:
        return f"<tensorc.defaults cache={self.cache!r}>"

    def _chosen(self, cache: Cache | str | os.PathLike[str] | None) -> Cache | str | os.PathLike[str] | None:
        """The cache that a call uses whose argument is this; None for none."""
        if cache is not None:
            return cache if isinstance(cache, Cache) or os.fspath(cache) else None
        if not self._is_set and self.cache is not None:
            os.makedirs(os.path.dirname(os.path.abspath(path_of(self.cache))), exist_ok=True)
        return self.cache


defaults = Defaults()
