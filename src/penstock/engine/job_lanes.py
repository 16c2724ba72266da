"""`ctx.lanes.permit(name)`: permits for requests inside a job."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock import runtime
from penstock.engine.charges import payer_of, start_name
from penstock.engine.lane_times import ELSEWHERE, Heard
from penstock.engine.parking import Parking
from penstock.engine.permit_queue import PermitHolder, Turn
from penstock.engine.permits import HeldPermit, PermitBroker
from penstock.engine.run import Run, undisturbed
from penstock.errors import HttpError, RateLimited
from penstock.model.amounts import Amounts
from penstock.model.ids import new_ref
from penstock.ports.bill import Bill
from penstock.ports.lanes import News, Permit, Report, Returned
from penstock.ports.ledger import Payer


class JobLanes(PermitHolder):
    """The lanes as one job sees them. While one of its requests waits for its turn the job has no
    worker, and its time does not count toward its timeout; while it waits in another lane than
    its own it has no slot in its own lane either, so that no two jobs wait for each other."""

    def __init__(self, broker: PermitBroker, run: Run, parking: Parking) -> None:
        self._broker = broker
        self._run = run
        self._parking = parking
        self.reports = broker.reports
        self.number, self.token, self.id = run.lease.seq, run.lease.token, run.lease.id
        self.slot_lane, self.limit, self.kind = run.lease.lane, run.limit, run.lease.kind

    @property
    def payer(self) -> Payer:
        return payer_of(self._run.lease)

    def leave(self) -> None:
        """Give back the slot in the job's own lane before the job ends, because what is left to do
        needs no request. Should one be needed after all, it takes a permit as in any other lane."""
        run = self._run
        run.lent_slot = False
        if run.in_lane:
            report = None
            if run.answered:
                took, bill = run.heard or (max(0.0, run.member.now() - run.started_at), None)
                report = self._broker.times.told(Report(News.SUCCESS), run.lane, took, bill)
            self._return_slot(report)
            run.answered = False

    def counts(self, name: str) -> bool:
        """Whether the lane, or its parent, makes something of what an answer says of its use, or
        of what is left."""
        return self._broker.counts(name) or self._broker.times.learns(name)

    @asynccontextmanager
    async def request(
        self, name: str, *, patience: float | None = None, bill: Bill | None = None
    ) -> AsyncIterator[None]:
        """As `permit`, but the first one in the job's own lane is that which the job was started
        with, unless the lane counts an amount that was not reserved then."""
        run = self._run
        own = name == run.lease.lane and run.in_lane and not (run.permit_used or run.slot_used)
        told = any(run.lease.reserved or ()) and not run.lease.usual
        if bill is not None and bill.amount is not None and not told:
            own = own and not self._broker.counts(name)
        if own and run.member.now() <= run.lease.void_at:
            run.permit_used = run.slot_used = True
            run.requests += 1
            begun = runtime.monotonic()
            try:
                yield
                run.answered = True
            except HttpError as error:
                run.answered = bool(error.status)  # a 4xx is an answer
                raise
            except RateLimited as error:
                # Now, and not with the job's end: its handler may make something else of it.
                report = Report(
                    News.RATE_LIMITED, error.retry_after, name, resets_after=error.resets_after
                )
                took = runtime.monotonic() - begun
                self._broker.tell(run, self._broker.times.told(report, name, took, bill))
                self.reports.note(error, report)
                run.heard = ELSEWHERE
                raise
            finally:
                if run.heard is None and self._broker.times.learns(name):
                    run.heard = Heard(runtime.monotonic() - begun, bill)
                run.requests -= 1
                self.free_slot()
                if bill is not None and bill.spent is not None:
                    self._settle_start(bill)
            return
        async with self._permit(name, patience, bill):
            yield

    def used(
        self,
        tokens: int | None = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost: float | None = None,
        model: str | None = None,
    ) -> None:
        """What this run has really used of the amount that the job reserved with its start. Say it
        once; until then, and if it is never said, that is all of it. `model` is what was asked, for
        the ledger, which hears of it also where the job has no lane, or one that counts nothing."""
        bill = Bill(self._run.lease.reserved)
        said = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        bill.used(tokens, **said, cost=cost, model=model)
        self._settle_start(bill)

    def _settle_start(self, bill: Bill) -> None:
        lease = self._run.lease
        reserved = any(lease.reserved or ())
        told = (start_name(lease), self.payer, lease.lane, lease.start_at, bill)
        used = self._broker.charges.ended(*told, reserved=reserved)
        if lease.reserved is not None:
            nothing = Permit(lease.lane, new_ref(), lease.start_at)
            of = (lease.seq, lease.token, lease.id)
            self._broker.give_back(Returned(nothing, None, *of, used=used, started=True))

    @asynccontextmanager
    async def permit(
        self,
        name: str,
        *,
        patience: float | None = None,
        tokens: int | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost: float | None = None,
        model: str = "",
    ) -> AsyncIterator[HeldPermit]:
        """Hold the right to make one request in lane `name`, for the lane's timeout at most.

        Waits for its turn as long as the job's deadline allows, without a worker. In the job's own
        lane one request at a time goes by the slot that the job has; others take further ones.
        LaneBusy where the lane's breaker is open, or its turn would come after the deadline or
        after `patience` seconds. A connection error or time-out inside becomes Unavailable.

        `tokens` and the like are what the request uses at most of what the lane counts: that much
        is reserved, until `permit.used(...)` says what it was. AmountTooLarge where that is more
        than the lane ever has. `model` is what is asked: the ledger tells of it, and its price is
        looked up.
        """
        bill = Bill(model=model)
        if (tokens, input_tokens, output_tokens, cost) != (None, None, None, None):
            bill = Bill(Amounts.of(tokens, input_tokens, output_tokens, cost), model)
        async with self._permit(name, patience, bill) as permit:
            yield permit

    @asynccontextmanager
    async def _permit(
        self, name: str, patience: float | None, bill: Bill | None
    ) -> AsyncIterator[HeldPermit]:
        run = self._run
        end = math.inf if run.lease.deadline is None else run.lease.deadline
        if patience is not None:
            end = min(end, run.member.now() + max(0.0, patience))
        learns = name == run.lease.lane
        if learns and run.heard is None:
            run.heard = ELSEWHERE
        run.requests += 1
        try:
            async with self._broker.hold(name, self, end=end, bill=bill) as permit:
                yield permit
        except Exception as error:
            learns = learns and self.reports.knows(error)
            raise
        finally:
            run.requests -= 1
            if learns:  # of a later request than the one that was answered
                run.answered = False

    def take_slot(self, lane: str) -> bool:
        run = self._run
        if run.slot_used or not self.shares_slot(lane):
            return False
        run.slot_used = True
        return True

    def free_slot(self) -> None:
        run = self._run
        run.slot_used = False
        if run.for_permits and run.in_lane:
            self._lend_slot()
        if self.slot_lane:
            self._broker.changed(self.slot_lane)

    def shares_slot(self, lane: str) -> bool:
        if not self._run.in_lane:
            return False
        own = self.slot_lane
        return lane == own or bool(self._broker.family(lane) & self._broker.family(own))

    def waits(self, lane: str) -> None:
        run = self._run
        self._parking.lend(run)
        if self.again or lane != self.slot_lane:
            run.for_permits += 1
            if run.in_lane and not run.slot_used:
                self._lend_slot()

    def goes_on(self) -> None:
        self._parking.go_on(self._run)

    async def back(self, lane: str) -> None:
        run = self._run
        if self.again or lane != self.slot_lane:
            run.for_permits -= 1
        cancelled: asyncio.CancelledError | None = None
        try:
            if run.lent_slot and not run.for_permits and run.interrupted is None:
                cancelled = await self._take_slot_again()
        finally:
            await self._parking.reclaim(run)
        if cancelled is not None:
            raise cancelled

    def _lend_slot(self) -> None:
        self._run.lent_slot = True
        self._return_slot(None)

    def _return_slot(self, report: Report | None) -> None:
        run = self._run
        lease, again = run.lease, run.slot_again
        permit = again or Permit(lease.lane, lease.seq, lease.start_at)
        run.in_lane, run.slot_again = False, None
        self._broker.give_back(Returned(permit, report, lease.seq, lease.token, lease.id))

    async def _take_slot_again(self) -> asyncio.CancelledError | None:
        """Wait for a slot in the job's own lane. A start it does not need: it makes no request."""
        run = self._run
        run.stop_clock()
        try:
            if run.slot_coming is None:
                run.slot_coming = asyncio.create_task(self._slot_comes(), name="penstock-slot")
            coming = run.slot_coming
            cancelled = await undisturbed(coming, run)
            if not coming.done():
                coming.cancel()
            elif not coming.cancelled():
                coming.result()
            return cancelled
        finally:
            run.start_clock()

    async def _slot_comes(self) -> None:
        run = self._run
        try:
            slot = await self._broker.take(self.slot_lane, Turn(PermitHolder()), slot_only=True)
            if run.lent_slot and not run.for_permits and run.interrupted is None and not run.ended:
                run.in_lane, run.lent_slot, run.slot_again = True, False, slot
            else:
                self._broker.give_back(Returned(slot, None, 0, 0))
        finally:
            run.slot_coming = None


class LanesAgain(JobLanes):
    """For requests that were answered 429, and are made again: each waits for a new permit, in line
    before those that have not been made. The job's own slot is given back meanwhile, also that in
    the same lane: its parent's other children can use it."""

    again = True

    @asynccontextmanager
    async def request(
        self, name: str, *, patience: float | None = None, bill: Bill | None = None
    ) -> AsyncIterator[None]:
        async with self._permit(name, patience, bill):
            yield
