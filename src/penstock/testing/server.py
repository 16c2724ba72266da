"""A model of a queue on a server: the SQLite adapter's transactions behind a simulated network.

Every process is on a host of its own, with a clock of its own and without the life files of the
others, so that only a lease can tell that it died. What goes by the server's clock (transactions,
renewals) does so; what a process needs to know of that clock it learns from answers, as with a real
server. A request can be lost before it is done or after, be late, or be done twice; the server
can restart, and fail over to a replica that lacks what was committed last.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from penstock.adapters.queue import Joining
from penstock.adapters.queue_clock import QueueClock
from penstock.adapters.sql.stop import cancel_requeued
from penstock.adapters.sqlite.lanes import free_slots
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.errors import QueueUnavailable
from penstock.model.job import HISTORY_LIMIT
from penstock.ports.lanes import Busy, Permit, PermitRequest, Returned
from penstock.ports.queue import Exchange, Lease, Progress, Ref, Settlement, Topic, Want
from penstock.testing.loop import SimulatedProcess, current
from penstock.testing.machine import Machine
from penstock.testing.model import ReferenceModel
from penstock.testing.recording import RecordingMember, RecordingQueue

T = TypeVar("T")
TRIP_SECONDS = (0.0002, 0.003)
LATE_SECONDS = (0.1, 2.0)
UNREACHABLE_SECONDS = 0.05
"""Until a process notices that it reaches nobody."""


class Network:
    """The network between processes and the server."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.lost = 0.0
        """The share of requests, and of answers, that get lost."""
        self.doubled = 0.0
        """The share of requests that are done twice, where that may be."""
        self.late_until = 0.0
        self.down_until = 0.0
        """The server cannot be reached until then."""
        self.cut: dict[SimulatedProcess, float] = {}
        """Processes that cannot reach it until then."""
        self.connections = 0
        """How often all connections were cut: what a process held by one before is in doubt."""

    def reachable(self) -> bool:
        clock = self._machine.loop.clock
        return clock >= max(self.down_until, self.cut.get(current.get(), 0.0))

    async def trip(self, request: Callable[[], Awaitable[T]], *, again: bool) -> T:
        """Have something done by the server; with `again` it may be done twice. A process that is
        spared faults tries until it is answered."""
        while True:
            try:
                return await self._trip(request, again)
            except QueueUnavailable:
                if current.get().faulty:
                    raise
                await asyncio.sleep(0.2)

    async def _trip(self, request: Callable[[], Awaitable[T]], again: bool) -> T:
        connections = self.connections
        await asyncio.sleep(self._seconds())
        if not self.reachable():
            await asyncio.sleep(UNREACHABLE_SECONDS)
            raise QueueUnavailable("simulated: the server cannot be reached")
        if self._is_lost():
            raise QueueUnavailable("simulated: the request got lost")
        answer = await request()
        if again and self.doubled and self._machine.chance.random() < self.doubled:
            answer = await request()
        await asyncio.sleep(self._seconds())
        if self._is_lost() or not self.reachable() or connections != self.connections:
            raise QueueUnavailable("simulated: the answer got lost")
        return answer

    def at_once(self, request: Callable[[], T]) -> T:
        """As `trip`, for a thread."""
        if not self.reachable() or self._is_lost():
            raise QueueUnavailable("simulated: the server cannot be reached")
        answer = request()
        if self._is_lost():
            raise QueueUnavailable("simulated: the answer got lost")
        return answer

    def _seconds(self) -> float:
        late = self._machine.loop.clock < self.late_until
        return self._machine.chance.uniform(*(LATE_SECONDS if late else TRIP_SECONDS))

    def _is_lost(self) -> bool:
        return self.lost > 0 and self._machine.chance.random() < self.lost


class ServerQueue(RecordingQueue):
    """The queue of a process that is a client of the server."""

    def __init__(
        self, machine: Machine, model: ReferenceModel, network: Network, **options: Any
    ) -> None:
        super().__init__(machine, model, **options)
        self.network = network
        self.folder = machine.folder / current.get().host
        self.clock = QueueClock()

    def now(self) -> float:
        return self.clock.now()

    async def write(
        self, operation: Callable[[Transaction], T], *, soft: bool = False, again: bool = False
    ) -> T:
        return await self._ask(lambda: super(ServerQueue, self).write(operation, soft=soft), again)

    async def read(self, operation: Callable[..., T]) -> T:
        return await self._ask(lambda: super(ServerQueue, self).read(operation), True)

    async def _ask(self, request: Callable[[], Awaitable[T]], again: bool) -> T:
        sent = self.clock.local()
        answer = await self.network.trip(request, again=again)
        self.clock.sample(sent, self._machine.server_time())
        return answer

    def new_member(self, joining: Joining) -> ServerMember:
        return ServerMember(self, joining._replace(inbox=None))


class ServerMember(RecordingMember):
    """A membership that knows what it holds. After a trip that failed, and once its connection was
    cut, it gives back what the server takes for its own and it has never heard of."""

    _queue: ServerQueue

    def __init__(self, queue: ServerQueue, joining: Joining) -> None:
        super().__init__(queue, joining)
        self._leases: set[Ref] = set()
        self._permits: set[int] = set()
        self._doubt = False
        self._made = queue.network.connections
        self._lock = asyncio.Lock()

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        progress: Sequence[Progress],
        want: Want | None,
        returned: Sequence[Returned] = (),
    ) -> Exchange:
        async with self._watched():
            done = await super().exchange(settlements, progress, want, returned)
            self._leases.difference_update(one.lease.ref for one in settlements)
            self._permits.difference_update(one.permit.ref for one in returned)
            self._leases.update(lease.ref for lease in done.leases)
        return done

    async def permits(self, requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
        async with self._watched():
            answers = await super().permits(requests)
            self._permits.update(one.ref for one in answers if isinstance(one, Permit))
        return answers

    def renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool:
        def renewed() -> bool:
            with self._queue._machine.at_server():
                return super(ServerMember, self).renew(status, holds)

        return self._queue.network.at_once(renewed)

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """A trip, one at a time: what another has just been given is not known here yet."""
        async with self._lock:
            made = self._queue.network.connections
            if self._doubt or self._made != made:
                await self._queue.write(self._give_back, again=True)
                self._doubt, self._made = False, made
            try:
                yield
            except BaseException:
                self._doubt = True
                raise

    def _give_back(self, tx: Transaction) -> None:
        if not self._is_member(tx):
            return
        if lost := self._unheard(tx, "running"):
            self.model.give_back(self.id, [(job, token) for _, job, token in lost])
            batch = json.dumps([[*row, None, None, None] for row in lost])
            values = {"batch": batch, "history_limit": HISTORY_LIMIT}
            tx.execute(sql("handed_back"), {**values, "member": self._number, "now": tx.now})
            run(cancel_requeued(tx.shared, [seq for seq, _, _ in lost]))
            tx.wake(Topic.READY)
        if cancelled := self._unheard(tx, "cancelled"):
            values = {"batch": json.dumps(cancelled), "member": self._number}
            tx.execute(sql("cancel_seen"), values)
            tx.wake(Topic.FINISHED)
        lost += cancelled
        known = {seq for seq, *_ in self._leases} - {seq for seq, *_ in lost} | self._permits
        slots = tx.execute("SELECT DISTINCT ref FROM slots WHERE holder = ?", (self._number,))
        if unknown := [ref for (ref,) in slots.fetchall() if ref not in known]:
            free_slots(tx, self._number, unknown)

    def _unheard(self, tx: Transaction, state: str) -> list[Any]:
        """Jobs of this state that are held here, by leases that the process does not know."""
        held = "SELECT seq, id, token FROM jobs WHERE holder = ? AND state = ? ORDER BY seq"
        rows = tx.execute(held, (self._number, state)).fetchall()
        return [row for row in rows if row not in self._leases]
