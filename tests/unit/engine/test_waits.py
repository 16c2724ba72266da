"""When waits end, and under which names that is recorded."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.engine.handlers import Handler
from penstock.engine.run import Run
from penstock.engine.step_recorder import StepRecorder
from penstock.engine.steps import RunSteps
from penstock.engine.waits import RunWaits
from penstock.errors import StepLimit, Suspended, ValidationError
from penstock.model.settings import EngineConfig
from penstock.ports.steps import Consumed, StepRow

NOON = 1_800_000_000.0
HOUR = 3600.0


class Records:
    """What is stored of a job's waits."""

    def __init__(self, max_steps: int = 10) -> None:
        self.settings = EngineConfig(max_steps=max_steps)
        self.rows: dict[str, StepRow] = {}

    async def load(self, run: Run) -> list[StepRow]:
        return list(self.rows.values())

    async def write(self, run: Run, row: StepRow) -> bool:
        self.rows[row.key] = row
        return True


def waits_at(now: float, records: Records) -> RunWaits:
    """The waits of a run at that time."""

    async def consume(*_: Any) -> Consumed:
        return Consumed(True, None)

    run: Any = SimpleNamespace(
        lease=SimpleNamespace(id="job", token=2),
        member=SimpleNamespace(now=lambda: now, consume=consume),
        **dict.fromkeys(("suspended", "ended", "interrupted")),
        **dict.fromkeys(("waits", "requests"), 0),
    )
    handler = cast(Handler, SimpleNamespace(version=""))
    steps = RunSteps(run, handler, cast(StepRecorder, records), cast(Any, None))
    return RunWaits(run, steps, cast(Any, None), 1.0)


async def slept_until(now: float, records: Records) -> float:
    """Until when a job sleeps that comes to a sleep of ten seconds at this time."""
    waits = waits_at(now, records)
    with pytest.raises(Suspended) as suspended:
        await waits.sleep(waits.begin_sleep(), 10)
    return suspended.value.until


async def test_a_sleep_ends_when_it_was_planned_to() -> None:
    records = Records()
    assert await slept_until(NOON, records) == NOON + 10
    assert await slept_until(NOON + 5, records) == NOON + 10


async def test_a_sleep_planned_while_the_clock_was_ahead_does_not_last_until_it_is_there() -> None:
    records = Records()
    await slept_until(NOON + HOUR, records)
    assert await slept_until(NOON, records) == NOON + 10
    assert await slept_until(NOON + 5, records) == NOON + 10


async def test_no_signal_has_the_name_of_the_end_of_a_wait_for_another() -> None:
    records = Records()
    waits = waits_at(NOON, records)
    with pytest.raises(Suspended):
        await waits.wait_for(waits.begin_wait_for("ok"), "ok", 10)
    assert len(records.rows) == 1
    assert waits.begin_wait_for("ok:until").key not in records.rows


async def test_waits_count_toward_the_steps_that_a_job_may_record() -> None:
    records = Records(max_steps=2)
    for later in range(2):
        waits = waits_at(NOON + HOUR * later, records)
        for _ in range(later):
            await waits.sleep(waits.begin_sleep(), 10)
        with pytest.raises(Suspended):
            await waits.sleep(waits.begin_sleep(), 10)
    waits = waits_at(NOON + 2 * HOUR, records)
    for _ in range(2):
        await waits.sleep(waits.begin_sleep(), 10)
    with pytest.raises(StepLimit, match="'sleep' is one too many"):
        await waits.sleep(waits.begin_sleep(), 10)
    assert len(records.rows) == 2


@pytest.mark.parametrize("lane", [7, "", "a\x00b", "\ud800"])
def test_a_lane_that_no_queue_can_store_is_refused_before_anything_is_written(lane: Any) -> None:
    """A queue that refuses one row of a batch looks as if it were away."""
    steps = waits_at(NOON, Records()).steps
    with pytest.raises(ValidationError, match="the lane of a step"):
        steps.begin("step", print, (), lane, 1, None, False, False)
