"""Every fault on every queue, one at a time: nothing is lost, no stale write is accepted."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import chaos, machine
from benchmarks.chaos import Cell
from tests.chaos.faults import FAULTS, PROCESSES, Field, suffer
from tests.chaos.small import SmallGround, small_ground
from tests.support.worker_processes import FAST

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]

QUEUES = ["sqlite", "postgres", "redis"]
BOUND = 60.0
"""Seconds until what a fault interrupted is done, on a busy machine."""


@pytest.fixture(params=QUEUES)
def queue(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ground(queue: str, tmp_path: Path) -> Iterator[SmallGround]:
    with small_ground(queue, tmp_path) as ground:
        yield ground


async def every_fault(
    ground: SmallGround, folder: Path, jobs: int, settings: dict[str, Any]
) -> list[Cell]:
    field = Field.on(ground, folder, settings)
    try:
        async with field.app:
            field.workers = [await field.start() for _ in range(PROCESSES)]
            return [await suffer(field, fault, jobs) for fault in FAULTS]
    finally:
        await field.farm.close()


def check(cells: list[Cell], jobs: int) -> None:
    for cell in cells:
        if not cell.why_not:
            assert (cell.lost, cell.stale) == (0, 0), cell
            assert cell.jobs >= jobs, cell
            assert cell.seconds < BOUND, cell


async def test_every_fault_is_survived(ground: SmallGround, tmp_path: Path) -> None:
    check(await every_fault(ground, tmp_path, 40, {**FAST, "lease_seconds": 1.5}), 40)


@pytest.mark.slow
async def test_every_fault_is_survived_with_the_usual_settings(
    ground: SmallGround, queue: str, tmp_path: Path
) -> None:
    """And counted, for docs/proof.md."""
    facts = machine.describe(tmp_path)
    before = chaos.read().get(queue)
    if os.environ.get("PENSTOCK_RESUME") and before and before.of(facts):
        pytest.skip("this commit's have been counted already")
    cells = await every_fault(ground, tmp_path, 400, {})
    chaos.keep(queue, chaos.Column(facts, cells))
    check(cells, 400)
