"""Settings every test shares."""

import asyncio
import gc
import os
import re
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support import forks, parsers
from tests.support.parallel import Parallel
from tests.support.run_folder import run_folder

CHAOS = Path(__file__).parent / "chaos"
LONG = Path(__file__).parent / "long.txt"
EARLY = (
    "tests/chaos/test_gone.py",
    "tests/chaos/test_matrix.py",
    "tests/conformance/queue/test_life_cycle.py",
    "tests/docs/test_answers_guide.py",
    "tests/docs/test_research_guide.py",
    "tests/integration/answers/test_small_model.py",
    "tests/integration/server/test_description.py",
    "tests/integration/test_examples.py",
    "tests/integration/documents/test_seams.py",
    "tests/integration/mcp/test_conformance.py",
    "tests/integration/mcp/test_inspector.py",
    "tests/integration/adapters/postgres/test_trouble.py",
    "tests/integration/documents/test_retrieval.py",
    "tests/integration/documents/test_scans.py",
    "tests/integration/engine/test_freeze.py",
    "tests/integration/librarian/test_trouble.py",
    "tests/integration/test_wheel.py",
)
"""The longest tests are in these: begun last, one process would still wait for them when the others
have nothing left to do."""

# Until all is collected: what is made meanwhile stays, and to look at it again and again takes 2 s.
gc.disable()

# The same examples on every run, and no limit on their time: the machine may be busy.
settings.register_profile(
    "penstock",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("penstock")
# Hypothesis tries constants of the source, too, so that its examples would depend on every line of
# it, and on which modules other tests have loaded by then.
assert callable(providers._get_local_constants)
providers._get_local_constants = lambda: providers._local_constants


def long_patterns() -> list[str]:
    """The lines of long.txt that name tests."""
    lines = (line.strip() for line in LONG.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers", type=int, default=0, help="run so many tests at a time, in forks (parallel.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin the run."""
    run_folder()
    # `make coverage` counts what tests do, and not what the processes do that they start: some look
    # at what a process has loaded, and how quickly.
    os.environ.pop("COVERAGE_PROCESS_START", None)
    if workers := config.option.workers:
        config.pluginmanager.register(Parallel(workers))


def pytest_collection_finish() -> None:
    """Keep the tests themselves out of every later search for garbage, which they make slow."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what long.txt names, and leave out what only `make chaos` asks for."""
    patterns = (re.escape(pattern).replace(r"\*", ".*") for pattern in long_patterns())
    named = re.compile("|".join(patterns))
    for item in items:
        if named.fullmatch(item.nodeid):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: not item.nodeid.startswith(EARLY))
    if config.option.workers:
        items.sort(key=_place)
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


def _place(item: pytest.Item) -> tuple[bool, int]:
    """Where a test is run if others run beside it. Files of a folder are alike, all waiting or all
    computing: they are scattered, in the same way every time."""
    if item.nodeid.startswith(EARLY):
        return (False, 0)
    file, _, _ = item.nodeid.partition("::")
    return (True, zlib.crc32(file.encode()))


@pytest.fixture(autouse=True)
def _parsers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsers are forks, except where a test is about their start or their death."""
    if not request.node.get_closest_marker("new_parsers"):
        asking = parsers.forking(lambda *asked: forks.ask(forks.server(), *asked))
        monkeypatch.setattr(asyncio, "create_subprocess_exec", asking)
