"""Permits for requests inside jobs: requested in batches, granted in turn."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from penstock import runtime
from penstock.engine.charges import Charges, reservation
from penstock.engine.claims import StartSlack
from penstock.engine.lane_times import LaneTimes
from penstock.engine.membership import Membership
from penstock.engine.permit_queue import PermitHolder, PermitQueue, Turn
from penstock.engine.requests import MOMENT
from penstock.engine.run import Run
from penstock.engine.settler import Settler
from penstock.errors import (
    AmountTooLarge,
    AuthenticationError,
    BudgetReached,
    HttpError,
    LaneBusy,
    QueueUnavailable,
    Unavailable,
)
from penstock.lanes.budgets import why
from penstock.lanes.reports import LaneReports, report_of
from penstock.model.amounts import NOTHING
from penstock.model.budget import BUDGET
from penstock.model.ids import new_ref
from penstock.model.lane import LaneConfig
from penstock.ports.bill import Bill
from penstock.ports.lanes import Busy, News, Permit, PermitRequest, Report, Returned
from penstock.ports.ledger import Charge

log = logging.getLogger("penstock")

MAX_LAG = 0.5
LIMITED_LOG_SECONDS = 5.0
"""Of the 429s of a lane one is logged, and then none for so long, or for as long as it pauses."""


class HeldPermit(Permit):
    """A permit, and what is to be told of the request that is made with it."""

    _bill: Bill

    def __new__(cls, permit: Permit, bill: Bill) -> HeldPermit:
        held = super().__new__(cls, *permit)
        held._bill = bill
        return held

    def used(
        self,
        tokens: int | None = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost: float | None = None,
        model: str | None = None,
    ) -> None:
        """What the request has really used of what its lane counts. Until then, and if it is never
        said, that is what was reserved. `model` is what is asked, for the ledger."""
        tell = self._bill.used
        tell(tokens, input_tokens=input_tokens, output_tokens=output_tokens, cost=cost, model=model)


class PermitBroker:
    """Asks the queue for permits, for all lanes in one trip. Who is refused stands in the line of
    its lane, and only those in front are asked for again."""

    def __init__(
        self,
        membership: Membership,
        settler: Settler,
        reports: LaneReports,
        charges: Charges,
        lane_config: Callable[[str], LaneConfig],
        poll_seconds: float,
        slack: StartSlack,
    ) -> None:
        self._membership = membership
        self._settler = settler
        self.reports = reports
        self.charges = charges
        self._lane_config = lane_config
        self.times = LaneTimes(lane_config)
        self._poll_seconds = poll_seconds
        self._slack = slack
        self._lines: dict[tuple[str, bool, bool], PermitQueue] = {}
        self._trip: asyncio.Task[None] | None = None
        self._lag = 0.0
        """Seconds that the queue has lately taken to answer: a start that comes sooner is lost."""
        self._timer: asyncio.TimerHandle | None = None
        self._limited: dict[str, float] = {}
        """Lanes whose 429 was logged, and until when no other of theirs is."""

    async def take(self, lane: str, turn: Turn, *, slot_only: bool = False) -> Permit:
        """A permit whose start time has come. LaneBusy when that would be after the turn's end, or
        the lane is in trouble."""
        while True:
            permit = await self._answer(lane, turn, slot_only)
            now = self._membership.member.now
            try:
                await asyncio.sleep(permit.start_at - now())
            except asyncio.CancelledError:
                self._unused(permit, turn)
                raise
            if self._slack.in_time(permit.start_at, permit.void_at, now()):
                return permit
            # Too late: it would crowd the next one. Take another.
            self._unused(permit, turn)
            turn.answer = asyncio.get_running_loop().create_future()

    async def _answer(self, lane: str, turn: Turn, slot_only: bool) -> Permit:
        key = (lane, slot_only, turn.asker.question)
        line = self._lines.setdefault(key, PermitQueue(lane, slot_only))
        line.add(turn, first=turn.waits)
        now = self._membership.member.now()
        if line.look_at > now:
            turn.wait(lane)
        self._look(now)
        patience: asyncio.TimerHandle | None = None
        if turn.end < math.inf:
            loop = asyncio.get_running_loop()
            patience = loop.call_later(max(0.0, turn.end - now), self._give_up, line, turn)
        try:
            return await turn.answer
        except asyncio.CancelledError:
            line.remove(turn)
            if turn.answer.done() and not turn.answer.cancelled() and not turn.answer.exception():
                self._unused(turn.answer.result(), turn)
            raise
        finally:
            if patience is not None:
                patience.cancel()

    def _give_up(self, line: PermitQueue, turn: Turn) -> None:
        """Its patience is at an end. One that is just asked for, or has not been yet, hears so with
        the answer."""
        if turn.waits and line.remove(turn):
            busy = turn.busy or Busy(line.lane, None, "others wait for it")
            turn.answer.set_exception(_busy(busy, self._membership.member.now()))

    def _unused(self, permit: Permit, turn: Turn) -> None:
        turn.leave_slot()
        self._return_unused(permit, turn)

    def _return_unused(self, permit: Permit, turn: Turn) -> None:
        """It goes back, no request having been made with it."""
        unused = turn.amount and turn.amount.nothing
        self._settler.give_back(Returned(permit, None, 0, 0, used=unused))
        if turn.charged:
            self.charges.void(_reserved(permit, turn))

    @asynccontextmanager
    async def hold(
        self, lane: str, asker: PermitHolder, *, end: float = math.inf, bill: Bill | None = None
    ) -> AsyncIterator[HeldPermit]:
        """A permit for as long as the block lasts, the lane's timeout at most. The lane learns how
        it ended, and what was used; a connection error or time-out inside becomes Unavailable."""
        bill = Bill() if bill is None else bill
        bill.begin()
        if bill.amount is not None:
            bill.amount = self.charges.priced(bill.amount, bill.model, lane)
        turn = Turn(asker, end, amount=bill.amount, model=bill.model)
        turn.charged = self.charges.entered_first(bill.amount, bill.model, lane)
        try:
            try:
                if asker.again:
                    turn.wait(lane)
                    await self._settler.flushed()
                permit = await self.take(lane, turn)
            finally:
                if turn.waits:
                    asker.goes_on()
            report: Report | None = None
            begun = runtime.monotonic()
            limits = [one for one in (permit.timeout, asker.limit) if one is not None]
            try:
                async with asyncio.timeout(min(limits, default=None)):
                    yield HeldPermit(permit, bill)
                report = Report(News.SUCCESS)
            except (Unavailable, AuthenticationError, HttpError) as error:
                report = self._learn(error, lane)
                raise
            except (ConnectionError, TimeoutError) as error:
                problem = Unavailable(f"{type(error).__name__}: {error}", lane=lane)
                report = self._learn(problem, lane)
                raise problem from error
            except Exception as error:
                report = report_of(error)
                raise
            finally:
                if report is not None:
                    report = self.times.told(report, lane, runtime.monotonic() - begun, bill)
                of = (asker.number, asker.token, asker.id)
                used = bill.spent
                if used is not None:
                    told = (_name(permit, asker), asker.payer, lane, permit.start_at, bill)
                    used = self.charges.ended(*told, reserved=turn.charged)
                elif turn.charged and not any(bill.amount or ()):
                    self.charges.void(_reserved(permit, turn))  # there is nothing to tell
                self.give_back(Returned(permit, report, *of, used=used))
                turn.leave_slot()
        finally:
            if turn.waits:
                await asker.back(lane)

    def _learn(self, error: BaseException, lane: str) -> Report | None:
        """The report by which the lane learns of the error; from then on it knows."""
        report = self.reports.of(error)
        if report is not None:
            report = report._replace(lane=report.lane or lane)
        self._log_limited(lane, report)
        self.reports.note(error, report)
        return report

    def new_number(self) -> int:
        """For somebody who asks and is no job: no job and no permit has it."""
        return new_ref()

    def give_back(self, returned: Returned) -> None:
        self._settler.give_back(returned)

    def tell(self, run: Run, report: Report | None) -> None:
        """How a request went that was made with the permit of its job: that permit stays."""
        self._log_limited(run.lease.lane, report)
        self._settler.tell(run, report)

    def _log_limited(self, lane: str, report: Report | None) -> None:
        """Once for all requests that are told so while the lane pauses."""
        if report is None or report.news is not News.RATE_LIMITED:
            return
        now, pause = self._membership.member.now(), report.retry_after or report.resets_after or 0.0
        if self._limited.get(lane, 0.0) <= now:
            self._limited = {name: until for name, until in self._limited.items() if until > now}
            log.warning(
                "lane %r got a 429 and is paused%s; repeated 429s lower its rate, see "
                "`penstock lanes`",
                lane,
                f" for {pause:g} s" if pause else "",
            )
        self._limited[lane] = now + max(pause, LIMITED_LOG_SECONDS)

    def family(self, lane: str) -> set[str]:
        """The lane and its parent: those whose slots a request in it takes."""
        parent = self._lane_config(lane).parent
        return {lane} if parent is None else {lane, parent}

    def counts(self, lane: str) -> bool:
        """Whether amounts are configured of the lane or its parent."""
        return any(self._lane_config(name).has_amounts for name in self.family(lane))

    def changed(self, lane: str | None = None, pause: float = MOMENT) -> None:
        """Slots may have been freed, or blocks lifted; in `lane`, or in any. `pause` is for news
        that come often, and mostly concern others."""
        if self._lines:
            for line in self._lines.values():
                if lane is None or line.lane == lane:
                    line.look(pause)
            self._look(self._membership.member.now())

    def comes_first(self, freed: Iterable[str]) -> bool:
        """Whether slots of these lanes are for requests that wait here, before jobs that have not
        begun are claimed for them: every other time, and always where a job that has begun needs
        its slot again to go on."""
        full = [line for line in self._lines.values() if line and line.full]
        if not full:
            return False
        lanes = set().union(*map(self.family, freed))
        turns = [line.next_turn() for line in full if line.full in lanes]
        return any(turns)

    def _look(self, now: float) -> None:
        """Ask for those whose time has come; look again when it comes for others."""
        if self._trip is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = min((line.look_at for line in self._lines.values() if line), default=math.inf)
        if at <= now:
            self._trip = asyncio.create_task(self._ask(), name="penstock-permits")
        elif at < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(at - now, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._look(self._membership.member.now())

    async def _ask(self) -> None:
        try:
            while asked := self._due():
                requests = [request for _, turns in asked for _, request in turns]
                begun = runtime.monotonic()
                member = self._membership.member
                try:
                    told = await member.permits(requests)
                    told = await self._reserve(
                        [turn for _, turns in asked for turn, _ in turns], told
                    )
                    answers = iter(told)
                    if member is not self._membership.member:
                        self._void([turn for _, turns in asked for turn, _ in turns], told)
                        raise QueueUnavailable("the membership lapsed meanwhile, and its permits")
                except QueueUnavailable as error:
                    # Who waits goes on waiting: to begin anew would repeat what has been done.
                    self._put_off(asked, error)
                except Exception as error:
                    for _, turns in asked:
                        for turn, _ in turns:
                            turn.leave_slot()
                            if not turn.answer.done():
                                turn.answer.set_exception(error)
                else:
                    lag = min(runtime.monotonic() - begun, MAX_LAG)
                    self._lag = max(lag, self._lag * 0.8)
                    for line, turns in asked:
                        self._hear(line, [(turn, next(answers)) for turn, _ in turns])
        finally:
            self._trip = None
            self._look(self._membership.member.now())

    async def _reserve(
        self, turns: Sequence[Turn], answers: list[Permit | Busy]
    ) -> list[Permit | Busy]:
        """Enter in the ledger what was granted, before anybody has it. What their budget has
        nothing left for goes back."""
        charges = _reservations(turns, answers)
        refused = await self.charges.reserve(charges) if charges else {}
        if not refused:
            return answers
        told = list(answers)
        for n, (turn, answer) in enumerate(zip(turns, answers, strict=True)):
            if isinstance(answer, Permit) and turn.charged:
                budget = refused.get(_name(answer, turn.asker))
                if budget is not None:
                    self.give_back(Returned(answer, None, 0, 0, used=NOTHING))
                    told[n] = Busy(BUDGET + budget.payer, budget.ends, why(budget), True)
        return told

    def _void(self, turns: Sequence[Turn], answers: Sequence[Permit | Busy]) -> None:
        """Nobody gets what was granted."""
        for charge in _reservations(turns, answers):
            self.charges.void(charge)

    def _due(self) -> list[tuple[PermitQueue, list[tuple[Turn, PermitRequest]]]]:
        now = self._membership.member.now()
        asked = []
        for key, line in list(self._lines.items()):
            if not line and line.look_at <= now:
                del self._lines[key]
            elif line and line.look_at <= now:
                asked.append((line, [(turn, self._request(line, turn)) for turn in line.take(now)]))
        return asked

    def _request(self, line: PermitQueue, turn: Turn) -> PermitRequest:
        asker, lane = turn.asker, line.lane
        turn.own = not line.slot_only and asker.take_slot(lane)
        ahead = max(self._lag, min(line.ahead(self._lag), turn.end - self._membership.member.now()))
        own = turn.own and asker.slot_lane == lane
        job = asker.number if turn.own else 0
        ref, question = new_ref(), asker.question
        lag, slack, amount = self._lag, self._slack.seconds, turn.amount
        return PermitRequest(
            lane, ref, own, ahead, job, line.slot_only, lag, question, slack, amount, asker.kind
        )

    def _hear(self, line: PermitQueue, answers: list[tuple[Turn, Permit | Busy]]) -> None:
        now = self._membership.member.now()
        granted, refused, again = 0, [], []
        for turn, answer in answers:
            if turn.answer.done():  # cancelled meanwhile
                turn.leave_slot()
                if isinstance(answer, Permit):
                    self._return_unused(answer, turn)
            elif isinstance(answer, Permit):
                granted += 1
                turn.answer.set_result(answer)
            else:
                turn.busy = answer
                late = max(now, answer.until or 0.0) >= turn.end
                # A lane in trouble lets its try be made by one job, with all its requests.
                trying = not turn.own and turn.asker.shares_slot(line.lane)
                turn.leave_slot()
                if answer.lane.startswith(BUDGET):
                    until = math.inf if answer.until is None else answer.until
                    turn.answer.set_exception(BudgetReached(answer.lane, until, answer.why))
                elif answer.refused:
                    turn.answer.set_exception(AmountTooLarge(answer.why))
                elif late or (answer.give_up and not trying):
                    turn.answer.set_exception(_busy(answer, now))
                else:
                    refused.append(answer)
                    again.append(turn)
        for turn in reversed(again):
            line.add(turn, first=True)
        line.learn(granted, refused, now, self._poll_seconds, self._lag)
        if refused:
            for turn in line:
                turn.wait(line.lane)

    def _put_off(
        self, asked: list[tuple[PermitQueue, list[tuple[Turn, PermitRequest]]]], error: Exception
    ) -> None:
        now = self._membership.member.now()
        for line, turns in asked:
            answers: list[tuple[Turn, Permit | Busy]] = [
                (turn, Busy(line.lane, now + self._poll_seconds, str(error))) for turn, _ in turns
            ]
            self._hear(line, answers)


def _name(permit: Permit, asker: PermitHolder) -> str:
    """No other permit of anybody ever has it."""
    payer = asker.payer
    return f"{payer.job or payer.tenant}{permit.ref}"


def _reserved(permit: Permit, turn: Turn) -> Charge:
    asker, amount = turn.asker, turn.amount or NOTHING
    start = permit.start_at
    return reservation(_name(permit, asker), asker.payer, permit.lane, turn.model, start, amount)


def _reservations(turns: Sequence[Turn], answers: Sequence[Permit | Busy]) -> list[Charge]:
    return [
        _reserved(answer, turn)
        for turn, answer in zip(turns, answers, strict=True)
        if turn.charged and isinstance(answer, Permit)
    ]


def _busy(busy: Busy, now: float) -> LaneBusy:
    return LaneBusy(busy.lane, now + 1.0 if busy.until is None else busy.until, busy.why)
