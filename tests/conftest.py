"""Settings every test shares."""

import os
from pathlib import Path

import pytest

CHAOS = Path(__file__).parent / "chaos"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the long chaos tests unless `make chaos` asked for them."""
    if os.environ.get("PENSTOCK_CHAOS") == "1":
        return
    skip = pytest.mark.skip(reason="long chaos test: run `make chaos`")
    for item in items:
        if CHAOS in item.path.parents and item.get_closest_marker("slow"):
            item.add_marker(skip)
