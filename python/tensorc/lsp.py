"""The language server for TC texts: `tensorc-lsp`, or `python -m tensorc.lsp`. It speaks over standard input and output.

Install it with `pip install 'tensorc[lsp]'`; docs/editors.md says how editors start it.
"""
from __future__ import annotations

import argparse
import sys
from typing import Sequence

from ._core import __version__

__all__ = ["main"]


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves one client until it ends the connection."""
    parser = argparse.ArgumentParser(
        prog="tensorc-lsp", description="A language server for TC texts, over standard input and output.")
    parser.add_argument("--version", action="version", version=f"tensorc-lsp {__version__}")
    parser.add_argument("--stdio", action="store_true", help="Accepted, because editors pass it; it is the only way.")
    parser.add_argument("--time_limit_ms", type=positive, default=2000, metavar="MS",
                        help="Bound on the time of one check of a file. Default: 2000.")
    parser.add_argument("--debounce_ms", type=positive, default=150, metavar="MS",
                        help="Pause in typing after which a file is checked. Default: 150.")
    given = parser.parse_args(arguments)
    try:
        from ._server import serve
    except ModuleNotFoundError as missing:
        sys.exit(f"tensorc-lsp: the Python package '{missing.name}' is not installed: pip install 'tensorc[lsp]'")
    serve(time_limit_ms=given.time_limit_ms, debounce_s=given.debounce_ms / 1000)


if __name__ == "__main__":
    main()
