"""What the package's functions make of their arguments."""
from __future__ import annotations

import os

from ._cache import Cache
from ._core import CpuOptions, MappingOptions


def typed(kind: type, **values: object) -> None:
    """Raises TypeError for the first value that is not of the kind."""
    for name, value in values.items():
        if not isinstance(value, kind):
            raise TypeError(f"'{name}' takes a {kind.__name__}, not {value!r}")


def said_checks(options: CpuOptions | MappingOptions | None) -> dict[str, bool]:
    """Returns check_bounds as an option, if these options say it rather than leave it to the package."""
    if options is None or not hasattr(options, "_says_check_bounds"):
        return {}
    return {"check_bounds": options.check_bounds}


def checking(options: CpuOptions | None, mapping: MappingOptions | None, check_bounds: bool | None,
             cache: Cache | str | os.PathLike[str] | None = None) -> tuple[CpuOptions, MappingOptions]:
    """Returns the options with the wanted checks of subscripts.

    Unless `check_bounds` is given, as an argument or as an option, kernels of the CPU check. Those of production are
    taken as they were made.
    """
    options = CpuOptions() if options is None else options
    mapping = MappingOptions() if mapping is None else mapping
    typed(CpuOptions, options=options)
    typed(MappingOptions, mapping=mapping)
    if check_bounds is not None:
        typed(bool, check_bounds=check_bounds)
        return options.replace(check_bounds=check_bounds), mapping.replace(check_bounds=check_bounds)
    is_production = isinstance(cache, Cache) and cache.production
    is_default = not is_production and not said_checks(options)
    return (options.replace(check_bounds=True) if is_default else options), mapping
