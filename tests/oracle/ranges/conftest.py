import os
from pathlib import Path

import pytest

from .compiler import Worker

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def worker():
    """The compiler; TC_RANGES_WORKER says where another build has it."""
    path = Path(os.environ.get("TC_RANGES_WORKER", FOLDER.parents[2] / "build/tests/ranges_worker"))
    assert path.exists(), f"{path} is not built: scripts/build ranges_worker"
    with Worker(str(path)) as process:
        yield process
