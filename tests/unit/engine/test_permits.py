"""Permits are asked for together, waited for in turn, and never lost."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from penstock.engine.charges import Charges
from penstock.engine.claims import StartSlack
from penstock.engine.permit_queue import PermitHolder
from penstock.engine.permits import PermitBroker
from penstock.errors import LaneBusy, QueueUnavailable, RateLimited
from penstock.lanes.reports import LaneReports
from penstock.model.lane import LaneConfig
from penstock.ports.bill import Bill
from penstock.ports.lanes import Busy, Permit, PermitRequest, Returned
from penstock.ports.ledger import Charge, Charged
from tests.support.waiting import PATIENCE

FULL = Busy("api", None, "all its slots are taken")


class Queue:
    """One lane of `slots`, which takes a moment to answer."""

    budgets = False
    spent_in: frozenset[str] = frozenset()

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self.asked: list[list[PermitRequest]] = []
        self.held: set[int] = set()
        self.most = 0
        self.trouble: list[Exception | Busy] = []
        self.known = asyncio.Event()
        this = cast(Any, self)  # the membership and its member, and the settler
        self.runner = PermitBroker(
            this,
            this,
            LaneReports(),
            Charges(this, {}, this),
            lambda name: LaneConfig(),
            0.05,
            StartSlack(),
        )

    @property
    def member(self) -> "Queue":
        return self

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def flushed(self) -> None:
        await self.known.wait()

    async def permits(self, requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
        self.asked.append(list(requests))
        await asyncio.sleep(0.001)
        answers: list[Permit | Busy] = []
        for request in requests:
            if self.trouble:
                trouble = self.trouble.pop(0)
                if isinstance(trouble, Exception):
                    raise trouble
                answers.append(trouble)
            elif len(self.held) < self.slots:
                self.held.add(request.ref)
                answers.append(Permit(request.lane, request.ref, self.now()))
            else:
                answers.append(FULL)
        self.most = max(self.most, len(self.held))
        await asyncio.sleep(0.001)
        return answers

    def give_back(self, returned: Returned) -> None:
        self.held.remove(returned.permit.ref)
        asyncio.get_running_loop().call_soon(self.runner.changed)


class Noted(PermitHolder):
    """Notes what it is told."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.told: list[str] = []

    def waits(self, lane: str) -> None:
        self.told.append("waits")

    def goes_on(self) -> None:
        self.told.append("goes on")

    async def back(self, lane: str) -> None:
        self.told.append("back")


async def use(queue: Queue, asker: PermitHolder, seconds: float = 0.0, **options: Any) -> None:
    async with queue.runner.hold("api", asker, **options):
        await asyncio.sleep(seconds)


async def test_all_that_are_wanted_at_the_moment_are_asked_for_in_one_trip() -> None:
    queue = Queue(slots=20)
    await asyncio.gather(*(use(queue, Noted(n)) for n in range(20)))
    assert [len(requests) for requests in queue.asked] == [20]


async def test_only_who_is_refused_waits_and_is_told_when_that_is_over() -> None:
    queue = Queue()
    first, second = Noted(1), Noted(2)
    await asyncio.gather(use(queue, first, 0.01), use(queue, second))
    assert first.told == []
    assert second.told == ["waits", "goes on", "back"]


async def test_who_waits_goes_on_waiting_while_the_queue_cannot_be_reached() -> None:
    queue = Queue()
    queue.trouble = [QueueUnavailable("away"), QueueUnavailable("still away")]
    async with asyncio.timeout(PATIENCE):
        await use(queue, Noted(1))
    assert len(queue.asked) == 3


async def test_who_was_answered_429_asks_again_only_once_its_lane_knows() -> None:
    queue, asker = Queue(), Noted(1)
    asker.again = True
    waiting = asyncio.create_task(use(queue, asker))
    await use(queue, Noted(2))
    assert (len(queue.asked), asker.told) == (1, ["waits"])
    queue.known.set()
    await waiting
    assert (len(queue.asked), asker.told) == (2, ["waits", "goes on", "back"])


async def test_429s_of_a_lane_that_pauses_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = Queue(slots=3)
    for _ in range(3):
        with pytest.raises(RateLimited):
            async with queue.runner.hold("api", Noted(1)):
                raise RateLimited(retry_after=60)
    (line,) = caplog.messages
    assert "lane 'api' got a 429 and is paused for 60 s" in line


async def test_lane_in_trouble_is_not_waited_for_by_any_in_line() -> None:
    queue = Queue()
    askers = [Noted(n) for n in range(3)]
    async with queue.runner.hold("api", Noted(9)):
        waiting = [asyncio.create_task(use(queue, asker)) for asker in askers]
        while not all(asker.told for asker in askers):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        queue.trouble = [Busy("api", None, "its breaker is open", give_up=True)] * 3
        queue.runner.changed()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in ended] == [LaneBusy] * 3
    assert queue.held == set()


async def test_turn_that_would_come_too_late_is_refused_at_once() -> None:
    queue = Queue()
    queue.trouble = [Busy("api", queue.now() + 60, "its rate")]
    with pytest.raises(LaneBusy, match="its rate"):
        await use(queue, Noted(1), end=queue.now() + 30)


async def test_cancelling_at_any_moment_loses_no_permit() -> None:
    queue, dice = Queue(slots=3), random.Random(7)
    for _ in range(15):
        tasks = [asyncio.create_task(use(queue, Noted(n % 5), 0.002)) for n in range(20)]
        for task in dice.sample(tasks, 12):
            await asyncio.sleep(dice.random() * 0.002)
            task.cancel()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(PATIENCE):
        while queue.held:  # noqa: ASYNC110 (the last answer may be on its way)
            await asyncio.sleep(0.001)
    assert queue.most == 3


async def test_what_is_granted_to_a_lapsed_membership_is_not_spent() -> None:
    queue, entered = Queue(), list[Charge]()
    told: list[Charge] = []

    class Lapsing:
        """Is gone when the answer comes, once."""

        @property
        def member(self) -> Any:
            return queue if entered else self

        def now(self) -> float:
            return queue.now()

        async def permits(self, requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
            answers = await queue.permits(requests)
            queue.held.clear()
            return answers

        async def charge(self, charges: Sequence[Charge], *, soft: bool = False) -> Charged:
            entered.extend(charges)
            return Charged({}, False, [])

    this = cast(Any, Lapsing())
    settler = cast(Any, queue)
    settler.charge = told.append
    queue.runner = PermitBroker(
        this,
        settler,
        LaneReports(),
        Charges(this, {}, settler),
        lambda name: LaneConfig(),
        0.01,
        StartSlack(),
    )
    async with asyncio.timeout(PATIENCE):
        await use(queue, Noted(1), bill=Bill.of(5))
    first, second = entered
    assert [(one.id, one.void) for one in told] == [(first.id, True)]
    assert second.id != first.id
