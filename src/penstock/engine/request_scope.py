"""Permits for requests made outside any job, such as embedding a question.

A service beside the workers, or instead of them, has no job to make requests for. Its requests take
permits all the same: the membership of the process holds their slots, so they are free when it
dies, and the breaker counts each visit as it counts a job.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.engine.permit_queue import PermitHolder
from penstock.engine.permits import PermitBroker
from penstock.errors import DeadlineExceeded, PenstockError
from penstock.outbound.client import HttpClient
from penstock.ports.bill import Bill
from penstock.ports.ledger import Payer
from penstock.ports.receipts import NoReceipts, Receipts

if TYPE_CHECKING:
    from penstock.outbound.http import JobHttp


class RequestScope:
    """See `penstock.ports.provider.ProviderContext`. `deadline` is on the queue's clock."""

    __slots__ = ("_client", "_now", "deadline", "lanes", "tenant")

    lane = ""

    def __init__(
        self,
        broker: PermitBroker,
        client: HttpClient,
        now: Callable[[], float],
        tenant: str,
        deadline: float,
        question: bool = False,
    ) -> None:
        self._client = client
        self._now = now
        self.tenant = tenant
        self.deadline = deadline
        self.lanes = ScopeLanes(broker, now, deadline, question, tenant)

    @property
    def http(self) -> JobHttp:
        """Outgoing requests with a permit each, under this visit's deadline."""
        from penstock.outbound.http import JobHttp  # here, because many processes make no requests

        return JobHttp(self._client.get, self, self.lanes, trace_hosts=self._client.trace_hosts)

    @property
    def receipts(self) -> Receipts:
        """None: nothing runs a request again."""
        return NoReceipts()

    def left(self) -> float:
        return self.deadline - self._now()

    def remaining(self) -> float:
        """Seconds left until the deadline, never below 0."""
        return max(0.0, self.left())

    def overdue(self) -> PenstockError:
        return DeadlineExceeded("the deadline passed between two requests")


class ScopeLanes(PermitHolder):
    """The lanes as one visit sees them. With `question` jobs leave it a slot."""

    def __init__(
        self,
        broker: PermitBroker,
        now: Callable[[], float],
        deadline: float,
        question: bool,
        tenant: str = "",
    ) -> None:
        self._broker = broker
        self.reports = broker.reports
        self._now = now
        self._deadline = deadline
        self.number = broker.new_number()
        self.question = question
        self._payer = Payer(tenant)
        self.trying: asyncio.Event | None = None
        """Set once a request of it is the one try of a lane in trouble."""

    @property
    def payer(self) -> Payer:
        return self._payer

    def counts(self, name: str) -> bool:
        """Whether the lane, or its parent, makes something of what an answer says of its use, or
        of what is left."""
        return self._broker.counts(name) or self._broker.times.learns(name)

    @asynccontextmanager
    async def request(
        self, name: str, *, patience: float | None = None, bill: Bill | None = None
    ) -> AsyncIterator[None]:
        """Hold the right to make one request in lane `name`.

        It waits for its turn as long as the visit lasts, or for `patience` seconds. LaneBusy where
        the lane is in trouble, or its turn comes too late.
        """
        end = self._deadline
        if patience is not None:
            end = min(end, self._now() + patience)
        async with self._broker.hold(name, self, end=end, bill=bill) as permit:
            if permit.trial and self.trying is not None:
                self.trying.set()
            yield
