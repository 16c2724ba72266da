"""Writes of steps: those that come together share a commit, and an outage loses none."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.engine.run import Interrupt, Run
from penstock.engine.step_recorder import MOST_TOGETHER, StepRecorder
from penstock.errors import QueueUnavailable, QueueUnusable
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue, StepWrite
from penstock.ports.steps import StepRow


class Member:
    """Notes what it is given, once the test lets it; each of `errors` is raised first."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.batches: list[list[str]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.refused: set[str] = set()

    async def record(self, writes: Sequence[StepWrite]) -> list[bool]:
        await self.open.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.batches.append([row.key for _, row in writes])
        return [row.key not in self.refused for _, row in writes]


def run_of(member: Member) -> Run:
    run = SimpleNamespace(member=member, lease=None, interrupted=None, ended=None)
    return cast(Run, run)


def row(key: int | str, result: str = "null") -> StepRow:
    return StepRow(str(key), "step", "", 1, "", None, 1, 0.0, 0.0, result)


@pytest.fixture
def recorder() -> StepRecorder:
    settings = EngineConfig(reconnect_first_seconds=0.001, reconnect_cap_seconds=0.001)
    return StepRecorder(cast(JobQueue, None), settings)


async def test_what_comes_while_a_write_is_under_way_goes_together(recorder: StepRecorder) -> None:
    member = Member()
    run = run_of(member)
    member.open.clear()
    first = asyncio.create_task(recorder.write(run, row("first")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # it is under way
    others = [asyncio.create_task(recorder.write(run, row(n))) for n in range(50)]
    await asyncio.sleep(0)
    member.open.set()

    assert all(await asyncio.gather(first, *others))

    assert member.batches == [["first"], [str(n) for n in range(50)]]


async def test_who_makes_one_step_after_another_waits_for_no_turn_of_the_loop(
    recorder: StepRecorder,
) -> None:
    begun: list[list[str]] = []

    class Ready:
        """Begins when it is asked, as SQLite does."""

        def record(self, writes: Sequence[StepWrite]) -> asyncio.Future[list[bool]]:
            begun.append([row.key for _, row in writes])
            done = asyncio.get_running_loop().create_future()
            done.set_result([True] * len(writes))
            return done

    run = run_of(cast(Member, Ready()))
    assert await recorder.write(run, row("first"))

    second = asyncio.create_task(recorder.write(run, row("second")))
    await asyncio.sleep(0)
    assert begun == [["first"], ["second"]]
    await second

    together = [asyncio.create_task(recorder.write(run, row(n))) for n in range(3)]
    assert all(await asyncio.gather(*together))
    more = [asyncio.create_task(recorder.write(run, row(n))) for n in range(3, 6)]
    assert all(await asyncio.gather(*more))
    assert begun[2:] == [["0"], ["1", "2"], ["3", "4", "5"]]  # and then they go together again


async def test_what_a_closed_queue_raises_at_once_is_raised(recorder: StepRecorder) -> None:
    class Closed:
        def record(self, writes: Sequence[StepWrite]) -> asyncio.Future[list[bool]]:
            raise QueueUnusable("closed")

    run = run_of(cast(Member, Closed()))

    told = await asyncio.gather(
        *(recorder.write(run, row(n)) for n in range(2)), return_exceptions=True
    )

    assert [type(one) for one in told] == [QueueUnusable, QueueUnusable]


async def test_a_commit_is_bounded(recorder: StepRecorder) -> None:
    member = Member()
    run = run_of(member)
    large = "x" * 1_000_000
    writes = [row(n) for n in range(MOST_TOGETHER + 1)] + [row(f"l{n}", large) for n in range(10)]

    assert all(await asyncio.gather(*(recorder.write(run, one) for one in writes)))

    assert [key for batch in member.batches for key in batch] == [one.key for one in writes]
    assert list(map(len, member.batches)) == [MOST_TOGETHER, 6, 5]


async def test_each_is_told_whether_it_was_stored(recorder: StepRecorder) -> None:
    member = Member()
    member.refused = {"1"}
    run = run_of(member)

    stored = await asyncio.gather(*(recorder.write(run, row(n)) for n in range(3)))

    assert stored == [True, False, True]


async def test_each_membership_has_its_own_commit(recorder: StepRecorder) -> None:
    old, new = Member(), Member()

    await asyncio.gather(recorder.write(run_of(old), row(1)), recorder.write(run_of(new), row(2)))

    assert (old.batches, new.batches) == ([["1"]], [["2"]])


async def test_an_outage_loses_no_record(recorder: StepRecorder) -> None:
    member = Member(QueueUnavailable("away"), QueueUnavailable("away"))

    assert await recorder.write(run_of(member), row(1))

    assert member.batches == [["1"]]


async def test_a_run_that_is_over_does_not_wait_for_the_queue(recorder: StepRecorder) -> None:
    member = Member(QueueUnavailable("away"))
    run: Any = run_of(member)
    run.interrupted = Interrupt.TIMEOUT

    with pytest.raises(QueueUnavailable):
        await recorder.write(run, row(1))
    assert member.batches == []


async def test_what_nobody_waits_for_any_more_is_recorded_all_the_same(
    recorder: StepRecorder,
) -> None:
    member = Member()
    member.open.clear()
    run = run_of(member)
    impatient = asyncio.create_task(recorder.write(run, row("impatient")))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.wait([impatient])
    member.open.set()

    await recorder.write(run, row("next"))

    assert [key for batch in member.batches for key in batch] == ["impatient", "next"]


async def test_an_error_that_does_not_pass_is_raised(recorder: StepRecorder) -> None:
    member = Member(QueueUnusable("damaged"))

    with pytest.raises(QueueUnusable):
        await recorder.write(run_of(member), row(1))
    assert await recorder.write(run_of(member), row(2))


async def test_closing_ends_what_is_under_way(recorder: StepRecorder) -> None:
    member = Member()
    member.open.clear()
    waiting = asyncio.create_task(recorder.write(run_of(member), row(1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    await recorder.close()

    waiting.cancel()
    assert member.batches == []
