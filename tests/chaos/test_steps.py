"""Jobs with steps, sleeps and waits for signals, whose processes are killed and frozen at random:
what was recorded is not done again."""

import os
import random
from pathlib import Path

import pytest

from benchmarks import machine, step_chaos
from benchmarks.step_chaos import Counted
from tests.chaos.course import course
from tests.chaos.grounds import ground
from tests.support.apps.stepping import STEPS

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]

QUEUES = ["sqlite", "postgres", "redis"]


@pytest.mark.parametrize("queue", QUEUES)
async def test_no_recorded_step_is_done_again_under_a_short_spell_of_chaos(
    tmp_path: Path, queue: str
) -> None:
    with ground(queue, tmp_path) as place:
        place.strikes = ()  # here the processes suffer, not the server
        counted = await course(place, tmp_path, jobs=30, faults=6, longest=1.3, seed=3)
    print(counted)
    assert counted.faultless, counted
    assert counted.records == 30 * STEPS
    assert counted.faults.keys() >= {"SIGKILL", "SIGSTOP past the lease"}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("queue", QUEUES)
async def test_no_recorded_step_is_done_again_under_a_long_spell_of_chaos(
    tmp_path: Path, queue: str
) -> None:
    """And counted, for docs/proof.md."""
    facts = machine.describe(tmp_path)
    before = step_chaos.read().get(queue)
    if os.environ.get("PENSTOCK_RESUME") and before and before.of(facts):
        pytest.skip("this commit's have been counted already")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with ground(queue, tmp_path) as place:
        counted = await course(place, tmp_path, jobs=500, faults=80, longest=3.0, seed=seed)
    print(counted)
    step_chaos.keep(queue, Counted(facts, counted))
    assert counted.faultless, counted
    assert counted.records == 500 * STEPS
