"""`ctx.lanes.permit(name)`: the right to make one request, for code inside a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from penstock.engine.reports import report_of
from penstock.engine.run import Run
from penstock.lanes.limits import AHEAD_SECONDS
from penstock.model.errors import (
    AuthenticationError,
    HttpError,
    LaneBusy,
    RateLimited,
    Unavailable,
)
from penstock.model.ids import new_ref
from penstock.ports.lanes import Busy, News, Permit, PermitRequest, Report, Returned
from penstock.ports.queue import Member, Topic, Wakeup

MOMENT = 0.005
PATIENCE = 1.0
"""Seconds a permit is waited for inside a job; longer waits are the engine's, not a worker's."""


class PermitDesk:
    """Asks the queue for permits, all that are wanted at the moment in one trip."""

    def __init__(
        self,
        member: Callable[[], Member],
        give_back: Callable[[Returned], None],
        listen: Callable[[Topic], Wakeup],
    ) -> None:
        self._member = member
        self._give_back = give_back
        self._listen = listen
        self._refs = iter(new_ref, 0)  # which it never is
        self._asked: list[tuple[PermitRequest, asyncio.Future[Permit | Busy]]] = []
        self._trip: asyncio.Task[None] | None = None
        self._freed = asyncio.Event()

    async def take(self, lane: str, job: int, *, rate_only: bool, patience: float) -> Permit:
        """A permit whose start time has come. LaneBusy when it would take too long."""
        now = self._member().now
        end = now() + patience
        while True:
            left = max(0.0, end - now())
            request = PermitRequest(lane, next(self._refs), rate_only, left, job)
            future: asyncio.Future[Permit | Busy] = asyncio.get_running_loop().create_future()
            self._asked.append((request, future))
            if self._trip is None:
                self._trip = asyncio.create_task(self._ask(), name="penstock-permits")
            try:
                answer = await asyncio.shield(future)
            except asyncio.CancelledError:
                # The answer may be on its way: whoever comes for it finds nobody, so it goes back.
                future.add_done_callback(self._unwanted)
                raise
            if isinstance(answer, Permit):
                try:
                    await asyncio.sleep(answer.start_at - now())
                except asyncio.CancelledError:
                    self._give_back(Returned(answer, None, 0, 0))
                    raise
                if now() <= answer.void_at:
                    return answer
                # Too late: it would crowd the next one. Take another.
                self._give_back(Returned(answer, None, 0, 0))
                continue
            at = now()
            late = answer.until is not None and answer.until > end
            if at >= end or late or answer.give_up:
                until = at + PATIENCE if answer.until is None else answer.until
                raise LaneBusy(answer.lane, until, answer.why)
            if answer.until is None:
                await self._until_freed(end)
            else:
                await asyncio.sleep(max(MOMENT, answer.until - AHEAD_SECONDS - at))

    @asynccontextmanager
    async def hold(
        self, lane: str, job: int, token: int, *, rate_only: bool, patience: float, job_id: str = ""
    ) -> AsyncIterator[Permit]:
        """A permit for as long as the block lasts, the lane's timeout at most. The lane learns how
        it ended; a connection error or time-out inside becomes Unavailable."""
        permit = await self.take(lane, job, rate_only=rate_only, patience=patience)
        report: Report | None = None
        try:
            async with asyncio.timeout(permit.timeout):
                yield permit
            report = Report(News.SUCCESS)
        except (Unavailable, AuthenticationError, HttpError) as error:
            error.lane = error.lane or lane
            report = report_of(error)
            error.told = True
            raise
        except (ConnectionError, TimeoutError) as error:
            report = Report(News.UNAVAILABLE)
            problem = Unavailable(f"{type(error).__name__}: {error}")
            problem.lane, problem.told = lane, True
            raise problem from error
        except Exception as error:
            report = report_of(error)
            raise
        finally:
            self.returned(Returned(permit, report, job, token, job_id))

    def new_number(self) -> int:
        """For somebody who asks and is no job: no job and no permit has it."""
        return next(self._refs)

    def returned(self, returned: Returned) -> None:
        self._give_back(returned)
        self._freed.set()

    def tell(self, run: Run, report: Report | None) -> None:
        """How a request went that was made with the permit of its job: that permit stays."""
        lease = run.lease
        nothing = Permit(lease.lane, next(self._refs), lease.start_at)
        self._give_back(Returned(nothing, report, lease.seq, lease.token, lease.id))

    def _unwanted(self, future: asyncio.Future[Permit | Busy]) -> None:
        if not future.cancelled() and future.exception() is None:
            answer = future.result()
            if isinstance(answer, Permit):
                self._give_back(Returned(answer, None, 0, 0))

    async def _ask(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                try:
                    answers = await self._member().permits([request for request, _ in asked])
                except Exception as error:
                    for _, future in asked:
                        future.set_exception(error)
                    continue
                for (_, future), answer in zip(asked, answers, strict=True):
                    future.set_result(answer)
        finally:
            self._trip = None

    async def _until_freed(self, end: float) -> None:
        """Wait for a slot to be given back, here or elsewhere."""
        listener = self._listen(Topic.READY)
        try:
            self._freed.clear()
            here = asyncio.create_task(self._freed.wait())
            there = asyncio.create_task(listener.wait(None))
            try:
                await asyncio.wait(
                    {here, there},
                    timeout=max(0.0, end - self._member().now()),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                here.cancel()
                there.cancel()
        finally:
            listener.close()


class JobLanes:
    """The lanes as one job sees them."""

    __slots__ = ("_desk", "_run")

    def __init__(self, desk: PermitDesk, run: Run) -> None:
        self._desk = desk
        self._run = run

    def leave(self) -> None:
        """Give back the slot in the job's own lane before the job ends, because what is left to do
        needs no request. Should one be needed after all, it takes a permit as in any other lane."""
        run = self._run
        if run.in_lane:
            run.in_lane = False
            lease = run.lease
            report = Report(News.SUCCESS) if run.permit_used else None
            permit = Permit(lease.lane, lease.seq, lease.start_at)
            self._desk.returned(Returned(permit, report, lease.seq, lease.token, lease.id))

    @asynccontextmanager
    async def request(self, name: str, *, patience: float = PATIENCE) -> AsyncIterator[None]:
        """As `permit`, but the first one in the job's own lane is that which the job was started
        with."""
        run = self._run
        own = name == run.lease.lane and run.in_lane and not run.permit_used
        if own and run.member.now() <= run.lease.void_at:
            run.permit_used = True
            try:
                yield
            except RateLimited as error:
                # Now, and not with the job's end: its handler may make something else of it.
                error.lane = name
                self._desk.tell(run, report_of(error))
                error.told = True
                raise
            return
        async with self.permit(name, patience=patience):
            yield

    @asynccontextmanager
    async def permit(self, name: str, *, patience: float = PATIENCE) -> AsyncIterator[Permit]:
        """Hold the right to make one request in lane `name`, for the lane's timeout at most.

        For the job's own lane it takes rate only: the job has its slot already. Waits up to a
        second (`patience`), else raises LaneBusy. A connection error or time-out inside becomes
        Unavailable.
        """
        lease = self._run.lease
        patience = min(patience, max(0.0, self._run.deadline - self._run.member.now()))
        own = name == lease.lane and self._run.in_lane
        async with self._desk.hold(
            name, lease.seq, lease.token, rate_only=own, patience=patience, job_id=lease.id
        ) as permit:
            yield permit
