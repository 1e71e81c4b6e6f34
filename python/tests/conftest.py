import os
import tempfile

import pytest

# PyTorch keeps compiled graphs between processes; each run of the tests compiles its own.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="tensorc-inductor-")


def has_gpu():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU of NVIDIA's with its driver and NVRTC")


def pytest_collection_modifyitems(items):
    # JAX starts threads that last, and other tests fork.
    items.sort(key=lambda item: item.path.name == "test_jax.py")
    if has_gpu():
        return
    skip = pytest.mark.skip(reason="there is no GPU that PyTorch can use")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)
