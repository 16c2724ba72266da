"""Settings every test shares."""

import os
from pathlib import Path

import pytest

from tests.support.run import run_folder

CHAOS = Path(__file__).parent / "chaos"


def pytest_configure(config: pytest.Config) -> None:
    """Begin the run, before pytest-xdist starts the processes that share it."""
    run_folder()
    if hasattr(config, "workerinput"):
        # `make coverage` counts what tests do in these, and not in what they start: some look at
        # what a process has loaded, and how quickly.
        os.environ.pop("COVERAGE_PROCESS_START", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make chaos` asks for."""
    if os.environ.get("PENSTOCK_CHAOS") == "1":
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    skip = pytest.mark.skip(reason="long chaos test: run `make chaos`")
    for item in items:
        if CHAOS in item.path.parents and item.get_closest_marker("slow"):
            item.add_marker(skip)
