"""The dispatcher: the one place of a process that talks to the queue for its workers.

Each trip settles what has ended and claims what there is room for. While a trip is under way
outcomes gather for the next one, so batches grow with the load by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from penstock.engine.retry import reconnect_delay
from penstock.engine.worker import Bench
from penstock.model.errors import QueueError
from penstock.ports.queue import Exchange, KindDefaults, Lease, Outcome, Settlement, Want

log = logging.getLogger("penstock")

DEGRADED_AFTER = 3
PREFETCH_HORIZON = 0.1
"""Seconds of work for all workers to keep at hand; so long jobs are not claimed ahead."""
GATHER_SECONDS = 0.005
"""While the workers have jobs at hand, outcomes wait this long for company."""


class Dispatcher:
    """Fills the internal queue, empties the settler."""

    def __init__(self, bench: Bench, lapsed: Callable[[], None]) -> None:
        self._bench = bench
        self._settings = bench.settings
        self._lapsed = lapsed
        self._wake = asyncio.Event()
        self._kinds = {
            kind: KindDefaults(
                handler.timeout,
                handler.max_retries,
                None if handler.lane is None else handler.lane_of_text,
            )
            for kind, handler in bench.handlers.items()
        }
        self._may_claim = True
        """There may be something to claim: not known to be empty."""
        self._next_at: float | None = None
        self._claiming = True
        self._finishing = False
        self._timers: dict[int, tuple[asyncio.TimerHandle, Lease]] = {}
        self._has_lanes = any(handler.lane is not None for handler in bench.handlers.values())
        self.degraded: str | None = None
        """Why the queue cannot be reached, after three failures in a row."""

    def wake(self) -> None:
        self._wake.set()

    def ready(self) -> None:
        """There may be something to claim."""
        self._may_claim = True
        self._wake.set()

    def stop_claiming(self) -> None:
        self._claiming = False
        self._wake.set()

    def finish(self) -> None:
        """End once everything is settled."""
        self._finishing = True
        self._wake.set()

    async def run(self) -> None:
        failures = 0
        while True:
            self._hand_back_waiting()
            settler = self._bench.settler
            want = self._want()
            if want is None and not self._settling_due():
                if self._finishing and not settler and not settler.has_returned:
                    return
                await self._sleep()
                continue
            taken, notes, returned = (
                settler.take(),
                settler.take_progress(),
                settler.take_returned(),
            )
            try:
                member = self._bench.member
                exchange = await member.exchange([s for s, _ in taken], notes, want, returned)
            except Exception as error:
                settler.put_back(taken)
                settler.put_back_returned(returned)
                failures += 1
                if failures == 1 and not isinstance(error, QueueError):
                    log.exception("a trip to the queue failed in a way it should not")
                if failures == DEGRADED_AFTER:
                    self.degraded = str(error)
                    log.error("the queue cannot be reached, trying on: %s", error)
                if self._finishing and failures >= DEGRADED_AFTER:
                    raise
                await asyncio.sleep(reconnect_delay(failures, self._settings))
                continue
            except asyncio.CancelledError:
                settler.put_back(taken)
                raise
            if self.degraded is not None:
                log.warning("the queue is back")
            failures, self.degraded = 0, None
            settler.stored(taken)
            self._deliver(exchange, want)

    def _deliver(self, exchange: Exchange, want: Want | None) -> None:
        for settlement in exchange.stale:
            lease = settlement.lease
            if settlement.outcome is not Outcome.HANDED_BACK:
                log.warning(
                    "the outcome of job %s (%s, run %d) was refused: "
                    "its lease had been taken over, or it was cancelled",
                    lease.id,
                    lease.kind,
                    lease.attempts,
                )
        if not exchange.member:
            self._may_claim = False  # until it has joined again
            self._lapsed()
            return
        if not self._claiming:  # stopped while the trip was under way
            for lease in exchange.leases:
                self._bench.settler.add(Settlement(lease, Outcome.HANDED_BACK), None)
            return
        for lease in exchange.leases:
            if lease.crashes:
                self._bench.crashed.add(lease.seq)
            if lease.lane:
                self._start_on_time(lease)
            else:
                self._bench.internal_queue.put_nowait(lease)
        if want is not None:
            self._next_at = exchange.next_at
            without_lane = sum(not lease.lane for lease in exchange.leases)
            if without_lane < want.limit or not want.limit:
                self._may_claim = False

    def _start_on_time(self, lease: Lease) -> None:
        """A permit may lie slightly ahead; its job waits here, and no worker with it."""
        self._bench.in_lanes.add(lease.seq)
        delay = lease.start_at - time.time()
        if delay <= 0:
            self._bench.internal_queue.put_nowait(lease)
            return

        def due() -> None:
            del self._timers[lease.seq]
            self._bench.internal_queue.put_nowait(lease)

        timer = asyncio.get_running_loop().call_later(delay, due)
        self._timers[lease.seq] = (timer, lease)

    def take_timed(self) -> list[Lease]:
        """The jobs whose start was still ahead; they start no more."""
        taken = [lease for _, lease in self._timers.values()]
        for timer, _ in self._timers.values():
            timer.cancel()
        self._timers.clear()
        return taken

    def _want(self) -> Want | None:
        if not self._claiming:
            return None
        if not self._may_claim:
            if self._next_at is None or time.time() < self._next_at:
                return None
            self._may_claim, self._next_at = True, None
        bench, waiting = self._bench, self._bench.internal_queue.qsize()
        prefetch = self._prefetch()
        limit = 0
        if waiting <= prefetch // 10:  # else enough at hand: claim many at once, later
            free = self._settings.max_workers - bench.busy - waiting + prefetch
            limit = max(0, min(free, bench.internal_queue.maxsize - waiting - len(self._timers)))
        lanes = self._lane_room() if self._has_lanes else 0
        if not limit and not lanes:
            return None
        return Want(limit, self._kinds, crashed=not bench.crashed, lanes=lanes)

    def _lane_room(self) -> int:
        """Jobs in lanes that would find a worker at their start time. They go before others in
        the internal queue, so only runs that last count as in their way."""
        now, bench = time.time(), self._bench
        lasting = sum(
            1
            for run in bench.runs.values()
            if run.lease.seq not in bench.in_lanes and now - run.started_at > PREFETCH_HORIZON
        )
        taken = lasting + len(bench.stuck) + len(bench.in_lanes)
        return max(0, self._settings.max_workers - taken)

    def _prefetch(self) -> int:
        ahead = self._settings.max_workers * PREFETCH_HORIZON
        average = max(self._bench.average_seconds, 1e-6)
        return min(self._settings.internal_queue, int(ahead / average))

    def _settling_due(self) -> bool:
        settler = self._bench.settler
        if settler.progress_due_in() <= 0 or settler.has_returned:
            return True
        # While the workers have enough at hand, outcomes wait for the next claim's trip.
        plenty = self._claiming and not self._bench.internal_queue.empty()
        return settler.oldest_age() >= (GATHER_SECONDS if plenty else 0)

    def _hand_back_waiting(self) -> None:
        """What was claimed ahead and not started in time goes back for others to take."""
        bench = self._bench
        for lease in bench.internal_queue.take_older(self._settings.prefetch_seconds):
            bench.crashed.discard(lease.seq)
            bench.settler.add(Settlement(lease, Outcome.HANDED_BACK), None)
            # Whoever takes it, it is not this process: its workers are busy with long jobs.
            bench.average_seconds = max(bench.average_seconds, self._settings.prefetch_seconds)

    async def _sleep(self) -> None:
        timeout = self._settings.poll_seconds
        if self._claiming and self._next_at is not None:
            timeout = min(timeout, self._next_at - time.time())
        settler = self._bench.settler
        timeout = min(timeout, settler.progress_due_in())
        if settler:
            timeout = min(timeout, GATHER_SECONDS - settler.oldest_age())
        age = self._bench.internal_queue.oldest_age()
        if age is not None:
            timeout = min(timeout, self._settings.prefetch_seconds - age)
        if timeout > 0:
            try:
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
            except TimeoutError:
                if timeout == self._settings.poll_seconds:
                    self._may_claim = True
        self._wake.clear()
