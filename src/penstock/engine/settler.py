"""Holds outcomes until the queue has acknowledged them."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, NamedTuple

from penstock import runtime
from penstock.engine.events import EngineEvents
from penstock.engine.run import Interrupt, Run
from penstock.model.ids import new_ref
from penstock.model.job_log import LOG_LIMIT
from penstock.model.settings import EngineConfig
from penstock.ports.lanes import Permit, Report, Returned
from penstock.ports.queue import Progress, Ref, Settlement

if TYPE_CHECKING:
    from penstock.ports.ledger import Charge


SPENT_IN_MOST = 1000
"""Lanes of which it is known here that something is charged in them; the first ones."""


class Load(NamedTuple):
    """The settlements and reports of one trip to the queue."""

    settlements: list[tuple[Settlement, Run | None]]
    progress: list[Progress]
    returned: list[Returned]
    waiters: list[asyncio.Future[None]]
    """Who waits until the queue knows."""
    charges: list[Charge]


class Settler:
    """Gathers settlements, progress and permits for the dispatcher's next trip."""

    def __init__(self, settings: EngineConfig, events: EngineEvents) -> None:
        self._settings = settings
        self._events = events
        self._settlements: list[tuple[Settlement, Run | None]] = []
        self._since = 0.0
        self._progress: dict[Ref, Progress] = {}
        self._progress_at = -math.inf
        self._returned: list[Returned] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._charges: list[Charge] = []
        self.budgets = True
        """Whether there may be budgets, as far as the last charge has told."""
        self.spent_in: set[str] = set()
        """Lanes in which something was charged here."""

    @property
    def empty(self) -> bool:
        return not (self._settlements or self._returned or self._charges)

    def add(self, settlement: Settlement, run: Run | None) -> None:
        """`run` is None for a job that was never started."""
        if not self._settlements:
            self._since = runtime.monotonic()
        self._settlements.append((settlement, run))
        if settlement.lease.reserved:
            from penstock.engine.charges import not_started  # few lanes count amounts

            self._charges += not_started(settlement)
        self._events.due.set()

    def note(self, run: Run, fraction: float | None, message: str, line: str = "") -> None:
        """Progress of a running job, or a line of its log. Of progress the last word before each
        trip counts; None says nothing of it."""
        if run.ended is not None or run.interrupted is Interrupt.LEASE_LOST:
            return
        new = Progress(run.lease, fraction, message, line)
        ref = run.lease.ref
        self._progress[ref] = _both(self._progress[ref], new) if ref in self._progress else new
        self._events.due.set()

    def give_back(self, returned: Returned) -> None:
        """A permit taken inside a job is no longer needed."""
        self._returned.append(returned)
        self._events.due.set()

    def charge(self, charge: Charge) -> None:
        """Something was used. That stays so if the leases are lost."""
        self._charges.append(charge)
        if len(self.spent_in) < SPENT_IN_MOST:
            self.spent_in.add(charge.lane)
        self._events.due.set()

    def tell(self, run: Run, report: Report | None) -> None:
        """How a request went that was made with the permit of its job: that permit stays."""
        lease = run.lease
        nothing = Permit(lease.lane, new_ref(), lease.start_at)
        self.give_back(Returned(nothing, report, lease.seq, lease.token, lease.id))

    async def flushed(self) -> None:
        """Wait until the queue knows of every permit that was given back so far."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._events.due.set()
        await waiter

    def due(self, gather: float) -> bool:
        """Whether a trip is worth making, if outcomes may wait `gather` seconds for company."""
        return bool(self._returned or self._waiters or self._charges) or self.due_in(gather) <= 0

    def due_in(self, gather: float) -> float:
        """Seconds until a trip is worth making; infinite when there is nothing."""
        wait = float("inf")
        if self._settlements:
            wait = self._since + gather - runtime.monotonic()
        if self._progress:
            progress_at = self._progress_at + self._settings.progress_seconds
            wait = min(wait, progress_at - runtime.monotonic())
        return wait

    def take(self) -> Load:
        """Everything there is; progress at most every `progress_seconds`, but for the last word
        of those that have ended."""
        load = Load(self._settlements, [], self._returned, self._waiters, self._charges)
        self._settlements, self._returned, self._waiters, self._charges = [], [], [], []
        if not self._progress:
            return load
        now = runtime.monotonic()
        if now >= self._progress_at + self._settings.progress_seconds:
            self._progress_at = now
            load.progress.extend(self._progress.values())
            self._progress = {}
        else:
            refs = [settlement.lease.ref for settlement, _ in load.settlements]
            load.progress.extend(self._progress.pop(ref) for ref in refs if ref in self._progress)
        return load

    def put_back(self, load: Load) -> None:
        """The trip failed: this goes with the next one."""
        for note in load.progress:
            ref = note.lease.ref
            newer = self._progress.get(ref)
            self._progress[ref] = note if newer is None else _both(note, newer)
        self._settlements[:0] = load.settlements
        self._returned[:0] = load.returned
        self._waiters[:0] = load.waiters
        self._charges[:0] = load.charges

    @staticmethod
    def stored(load: Load) -> None:
        """The queue has answered: a crash from here on does not concern these runs."""
        for _, run in load.settlements:
            if run is not None:
                run.unmark()
        for waiter in load.waiters:
            if not waiter.done():  # cancelled meanwhile
                waiter.set_result(None)

    def forget(self) -> None:
        """The leases are lost; what was gathered under them is void."""
        self._settlements.clear()
        self._progress.clear()
        self._returned.clear()


def _both(old: Progress, new: Progress) -> Progress:
    """What two notes on the same run come to."""
    said = old if new.fraction is None else new
    return said._replace(lines=(old.lines + new.lines)[-LOG_LIMIT:])
