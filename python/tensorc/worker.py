"""A process that compiles and measures for tune(): python -m tensorc.worker, spoken to on its standard streams."""
import sys

from . import _core

if __name__ == "__main__":
    sys.exit(_core.serve_tune_jobs())
