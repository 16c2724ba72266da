"""Requests of jobs and services: the permits and the HTTP client of a process.

All of it is loaded by the first that makes a request: the jobs of many apps make none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from penstock.engine.claims import StartSlack
from penstock.engine.membership import Membership
from penstock.engine.parking import Parking
from penstock.engine.settler import Settler
from penstock.lanes.reports import LaneReports
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue

if TYPE_CHECKING:
    from penstock.engine.job_lanes import JobLanes
    from penstock.engine.permits import PermitBroker
    from penstock.engine.request_scope import RequestScope
    from penstock.engine.run import Run
    from penstock.outbound.client import HttpClient
    from penstock.outbound.fetch import JobFetch
    from penstock.outbound.http import JobHttp
    from penstock.ports.receipts import OpenReceipts

T = TypeVar("T")

MOMENT = 0.005
"""Between two looks for permits because something happened here."""


@dataclass(eq=False)
class Requests:
    """Permits of lanes, and the HTTP client, of a process."""

    queue: JobQueue
    settings: EngineConfig
    membership: Membership
    settler: Settler
    reports: LaneReports
    parking: Parking
    slack: StartSlack

    def __post_init__(self) -> None:
        if self.settings.outbound.fetch_allow:
            _ = self.client  # raises what is wrong with it now, and not in the first job

    @cached_property
    def permits(self) -> PermitBroker:
        from penstock.engine.charges import Charges
        from penstock.engine.permits import PermitBroker

        poll_seconds, lane_config = self.settings.poll_seconds, self.queue.lane_config
        charges = Charges(self.queue, self.settings.prices, self.settler)
        parts = (self.membership, self.settler, self.reports, charges)
        made = PermitBroker(*parts, lane_config, poll_seconds, self.slack)
        return _only(self, "permits", made)

    @cached_property
    def client(self) -> HttpClient:
        from penstock.outbound.client import HttpClient
        from penstock.outbound.web_address import parse_allow

        out = self.settings.outbound
        made = HttpClient(parse_allow(out.fetch_allow), out.contact, out.trace_hosts)
        return _only(self, "client", made)

    def lanes(self, run: Run) -> JobLanes:
        from penstock.engine.job_lanes import JobLanes

        return JobLanes(self.permits, run, self.parking)

    def http(self, run: Run, receipts: OpenReceipts) -> JobHttp:
        """See `JobContext.http`."""
        from penstock.engine.job_lanes import LanesAgain
        from penstock.outbound.http import JobHttp

        lanes, again = self.lanes(run), LanesAgain(self.permits, run, self.parking)
        client = self.client
        hosts = client.trace_hosts
        return JobHttp(client.get, run, lanes, trace_hosts=hosts, again=again, receipts=receipts)

    def fetch(self, run: Run, receipts: OpenReceipts) -> JobFetch:
        """See `JobContext.fetch`."""
        from penstock.outbound.fetch import JobFetch
        from penstock.outbound.http import JobHttp

        lanes = self.lanes(run)
        http = JobHttp(self.client.guarded, run, lanes, probed=False, receipts=receipts)
        return JobFetch(http, self.client.allow, self.client.agent)

    def scope(self, tenant: str, deadline: float, question: bool) -> RequestScope:
        """For a service of this process."""
        from penstock.engine.request_scope import RequestScope

        return RequestScope(self.permits, self.client, self.queue.now, tenant, deadline, question)

    def changed(self, pause: float = MOMENT) -> None:
        """Slots may have been freed, or blocks lifted: those that wait for permits look after
        `pause` seconds."""
        if "permits" in self.__dict__:
            self.permits.changed(pause=pause)

    def come_first(self, freed: Iterable[str]) -> bool:
        """See `PermitBroker.comes_first`."""
        return "permits" in self.__dict__ and self.permits.comes_first(freed)

    async def close(self) -> None:
        if "client" in self.__dict__:
            await self.client.close()


def _only(requests: Requests, name: str, made: T) -> T:
    """The first one that was made: handlers in threads may ask at the same time."""
    only: T = requests.__dict__.setdefault(name, made)
    return only
