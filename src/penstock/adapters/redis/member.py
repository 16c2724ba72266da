"""One worker process's membership of a Redis queue."""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.adapters.lease_watch import LeaseWatch
from penstock.adapters.life_file import open_life_file
from penstock.adapters.queue import Joining, QueueMember
from penstock.adapters.queue_clock import ClockWatch
from penstock.adapters.redis import lanes, rows, steps, takeover
from penstock.adapters.redis.connections import BlockingChannel
from penstock.adapters.redis.scripts import given
from penstock.adapters.redis.settlements import progress_asks, settlement_asks
from penstock.adapters.sql.chores import without_lane
from penstock.adapters.sql.takeover import STOPPED, boot_id, sweep_files
from penstock.ports.lanes import Busy, Permit, PermitRequest, Returned
from penstock.ports.queue import (
    NO_LANE,
    Exchange,
    KindDefaults,
    Lease,
    Progress,
    Settlement,
    StepWrite,
    Want,
)
from penstock.ports.steps import EVENT_NAME, Consumed, StepRow

if TYPE_CHECKING:
    from penstock.adapters.redis.queue import RedisQueue

RETENTION_EVERY = 60.0
FORGETS = 2
"""What `exchange` says to a member of whose trips the server has forgotten some."""

_random = random.Random()  # noqa: S311 (jitter, not a secret)


class RedisMember(QueueMember):
    """See `penstock.ports.queue.Member`."""

    def __init__(self, queue: RedisQueue, joining: Joining) -> None:
        super().__init__(joining)
        self._queue = queue
        self._connections = queue.connections
        self._renewing = BlockingChannel(queue.connections)
        self._trips = 0
        self._unanswered: int | None = None
        """The first of the trips since the last answer: the server may have made any of them."""
        self._answered = 0
        """The last trip that was answered."""
        self._leases: dict[str, Lease] = {}
        self._permits: set[int] = set()
        """What it holds, as far as it was told, or may have been given just now."""
        self._doubt = False
        """The server has forgotten trips: what it takes to be held here may not be."""
        self._given_back: dict[int, int] = {}
        """Permits (by ref) on their way back, and the first trip they went with."""
        self._asks = 0
        self._unheard: list[Returned] = []
        """Permits that may have been granted with an answer that did not come. They are given
        back with the next request."""
        self._aged_at = self._retained_at = float("-inf")
        self._clock = ClockWatch()
        self._watch = LeaseWatch()

    def now(self) -> float:
        return self._queue.now()

    async def join(self) -> None:
        self._life = open_life_file(self._queue.folder)
        try:
            self._number = await self._connections.call("join", self._introduction())
            skip = 0
            while skip >= 0:
                skip = await self._connections.call("try_at_once", {"skip": skip})
        except BaseException:
            self._life.close()
            raise

    def _introduction(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "boot": boot_id(),
            "life": self._life.name,
            "kinds": json.dumps(self._kinds),
            "max_workers": self._max_workers,
            "lease_seconds": self._lease_seconds,
        }

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        progress: Sequence[Progress],
        want: Want | None,
        returned: Sequence[Returned] = (),
    ) -> Exchange:
        if want is not None and not want.looks:
            want = None
        asks, results = settlement_asks(settlements, self.id)
        ask: dict[str, Any] = {"settlements": asks, "progress": progress_asks(progress)}
        if want is not None:
            ask["want"] = _want_ask(want)
        reply = await self._trip(ask, returned, results)
        for settlement in settlements:
            self._leases.pop(settlement.lease.id, None)
        _, member, stale, spared, leases, next_at, unknown, forgotten = reply
        if want is not None and (unknown or forgotten):
            await self._adopt(want, unknown)
            await self._queue.configure(forgotten)
            again = {**_want_ask(want), "regardless": True}
            reply = await self._trip({"settlements": [], "progress": [], "want": again})
            _, member, _, _, leases, next_at, *_ = reply
        self._given_back.clear()  # not before: if anything fails, they are given back again
        self._permits.difference_update(one.permit.ref for one in returned)
        found = [rows.lease(told) for told in leases]
        self._leases.update((lease.id, lease) for lease in found)
        return Exchange(
            found,
            [settlements[number - 1] for number in stale if number <= len(settlements)],
            float(next_at) if next_at else None,
            bool(member),
            frozenset(settlements[number - 1].lease.ref for number in spared),
        )

    async def _trip(
        self, ask: dict[str, Any], returned: Sequence[Returned] = (), results: Sequence[str] = ()
    ) -> Any:
        self._trips += 1
        ask |= {"member": self._number, "life": self._life.name}
        ask |= {"trip": self._trips, "jitter": _jitter()}
        for one in returned:
            self._given_back.setdefault(one.permit.ref, self._trips)
        ask["returned"] = [
            lanes.returned_ask(one, self._given_back[one.permit.ref]) for one in returned
        ]
        ask |= {"weights": self._queue.weights_of(), "answered": self._answered}
        if self._doubt:
            held = self._leases.values()
            ask["known"] = {str(lease.seq): f"{lease.id} {lease.token}" for lease in held}
            ask["permits"] = {str(ref): True for ref in self._permits}
        if self._unanswered is None:
            self._unanswered = self._trips
        else:
            ask["unanswered"] = self._unanswered
        clock = self._queue.clock
        asked = clock.local()
        reply = await self._connections.trip("exchange", ask, *results)
        clock.sample(asked, float(reply[0]))
        self._unanswered = None
        self._answered = self._trips
        self._doubt = reply[1] == FORGETS
        return reply

    async def _adopt(self, want: Want, unknown: Sequence[Sequence[str]]) -> None:
        """Say in which lane jobs belong that were enqueued where their kind was unknown."""
        jobs = [_adopted(want.kinds[kind], int(seq), payload) for seq, kind, payload in unknown]
        names = dict.fromkeys(job["lane"] for job in jobs if "lane" in job)
        ask = {
            "jobs": jobs,
            "configs": lanes.configs(names, self._queue.lane_config),
            "weights": self._queue.weights_of(),
        }
        if jobs:
            await self._connections.call("adopt", ask)

    async def permits(self, requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
        self._asks += 1
        unheard, self._unheard = self._unheard, []
        names = dict.fromkeys(request.lane for request in requests)
        ask = {
            "member": self._number,
            "life": self._life.name,
            "number": self._asks,
            "jitter": _jitter(),
            "requests": [given(request._asdict()) for request in requests],
            "configs": lanes.configs(names, self._queue.lane_config),
            "returned": [lanes.returned_ask(one, 0) for one in unheard],
        }
        self._permits.update(request.ref for request in requests)
        clock = self._queue.clock
        asked = clock.local()
        try:
            now, answers = await self._connections.call("permits", ask)
        except BaseException:
            granted = [(Permit(one.lane, one.ref, 0.0), one.amount) for one in requests]
            self._unheard += [
                *unheard,
                *(
                    Returned(permit, None, 0, 0, used=amount and amount.nothing)
                    for permit, amount in granted
                ),
            ]
            raise
        clock.sample(asked, float(now))
        self._permits.difference_update(one.permit.ref for one in unheard)
        found = [
            lanes.permit(request, told) for request, told in zip(requests, answers, strict=True)
        ]
        granted_refs = {one.ref for one in found if isinstance(one, Permit)}
        self._permits.difference_update({request.ref for request in requests} - granted_refs)
        return found

    async def record(self, writes: Sequence[StepWrite]) -> list[bool]:
        leases, stored = steps.write_ask(writes)
        ask = {"member": self._number, "member_id": self.id, "leases": leases}
        if any(row.name == EVENT_NAME for _, row in writes):
            ask["event"] = True
        reply = await self._connections.call("record", ask, *stored)
        if any(row.result is not None for _, row in writes):
            await self._queue.synced()
        return [bool(one) for one in reply]

    async def consume(self, lease: Lease, name: str, row: StepRow) -> Consumed:
        ask = {"member": self._number, "member_id": self.id, "lease": steps.lease_ask(lease)}
        ask |= {"name": name, "key": row.key}
        held, *payload = await self._connections.call("consume", ask, steps.line_of(row))
        if payload:
            await self._queue.synced()
        return Consumed(bool(held), payload[0] if payload else None)

    async def drop_steps(self, lease: Lease, keys: Sequence[str]) -> bool:
        ask = {"member": self._number, "member_id": self.id, "lease": steps.lease_ask(lease)}
        return bool(await self._connections.call("drop_steps", {**ask, "keys": list(keys)}))

    async def probes(self) -> list[tuple[str, str]]:
        due = await self._connections.call("probes", {})
        return [(name, where) for name, where in due]

    async def probed(self, lane: str, ok: bool) -> None:
        ask = {"lane": lane, "ok": ok, "jitter": _jitter()}
        await self._connections.call("probed", ask)

    def renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool:
        ask = {
            "member": self._number,
            "life": self._life.name,
            "lease_seconds": self._lease_seconds,
            "status": json.dumps(dict(status)),
            "holds": [{"seq": lease.seq, "id": lease.id, "token": lease.token} for lease in holds],
        }
        return bool(self._renewing.run("renew", ask))

    async def cancelled(self) -> list[int]:
        ask = {"member": self._number, "life": self._life.name}
        return [int(seq) for seq in await self._connections.call("stopping", ask)]

    async def upkeep(self) -> None:
        folder = self._queue.folder
        clock, others, overdue, cascades, ahead = await self._connections.call(
            "upkeep", {"member": self._number}
        )
        if await takeover.take_over(self._connections, folder, others, self._watch):
            await self._sweep(folder)
        if overdue:
            await self._connections.call("overdue", {})
        if cascades:
            await self._queue.cancel_children()
        if ahead:
            await self._connections.call("bring_forward", {})
        if self._clock.went_back(float(clock)):
            while await self._connections.call("set_back", {}):
                pass
        now = time.monotonic()
        if now >= self._aged_at + self._queue.ageing_seconds / 4:
            self._aged_at = now
            await self._age()
        if now >= self._retained_at + RETENTION_EVERY:
            self._retained_at = now
            await self._queue.retain()

    async def _age(self) -> None:
        """Lift jobs that waited long by one band."""
        ask = {"ageing_seconds": self._queue.ageing_seconds, "weights": self._queue.weights_of()}
        for kind in self._kinds:
            await self._connections.call("age", {**ask, "kind": kind})

    async def leave(self) -> None:
        self._still_started()
        try:
            me, life = self._number, self._life.name
            await takeover.end(self._connections, me, life, self._started, STOPPED)
        finally:
            self._renewing.close()
            self._life.close()
        await self._sweep(self._queue.folder)

    async def _sweep(self, folder: Path) -> None:
        _, others, *_ = await self._connections.call("upkeep", {"member": 0})
        sweep_files(folder, {life for _, life, *_ in others})


def _jitter() -> float:
    """For a breaker that opens, so that tries of many lanes spread out; see `breaker.lua`."""
    return _random.uniform(0.8, 1.0)


def _want_ask(want: Want) -> dict[str, Any]:
    ask = {
        "limit": want.limit,
        "lanes": want.lanes,
        "crashed": want.crashed,
        "ordinary": want.ordinary,
        "slack": want.slack,
        "names": list(want.kinds),
        "kinds": {
            kind: {
                "timeout": defaults.timeout,
                "max_retries": defaults.max_retries,
                "in_lanes": defaults.lane_of is not None or defaults.amount_of is not None,
            }
            for kind, defaults in want.kinds.items()
        },
    }
    return given(ask)


def _adopted(defaults: KindDefaults, seq: int, payload: str) -> dict[str, Any]:
    ask: dict[str, Any] = {
        "seq": seq,
        "timeout": defaults.timeout,
        "max_retries": defaults.max_retries,
    }
    try:
        ask["lane"] = NO_LANE if defaults.lane_of is None else defaults.lane_of(payload)
        if defaults.amount_of is not None:
            ask["amount"] = defaults.amount_of(payload)
    except Exception as error:  # whatever the user's function raises, only this job fails
        described = without_lane(error)
        ask |= {"error": json.dumps(described), "error_type": described["type"]}
    return ask
