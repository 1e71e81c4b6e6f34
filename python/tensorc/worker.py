"""A process that compiles and measures for tune(): python -m tensorc.worker, spoken to on its standard streams."""
import sys

from . import _core


def main() -> None:
    """Serves until its standard input ends."""
    sys.exit(_core.serve_tune_jobs())


if __name__ == "__main__":
    main()
