"""Every index says the same as the rows, whatever has happened.

A relational database keeps its indexes itself; here scripts do. So: anything at random, through
the port, and then every key is compared with what the rows say it should be.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from typing import Any

import pytest
import redis

from penstock.adapters.redis import RedisQueue
from penstock.adapters.redis.address import parse
from penstock.model.ids import new_id
from penstock.model.job import JobState, Priority
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import News, Report
from penstock.ports.queue import (
    UNKNOWN_LANE,
    JobFilter,
    KindDefaults,
    Lease,
    Member,
    Outcome,
    Settlement,
    Want,
)
from tests.conformance.support import (
    claim,
    claim_one,
    completed,
    error_of,
    new_jobs,
    settle,
)
from tests.support.database_servers import redis_url

KINDS = ("work", "laned", "guessed")
LANES = ("", "api", "child", UNKNOWN_LANE)


def lane_config(name: str) -> LaneConfig:
    parent = "parent" if name == "child" else None
    return LaneConfig(
        min_interval_seconds=0.0, max_parallel=3, parent=parent, breaker_first_seconds=0.01
    )


class Chaos:
    """Two members that do anything at any time."""

    def __init__(self, queue: RedisQueue, seed: int) -> None:
        self._queue = queue
        self._random = random.Random(seed)
        self._members: list[Member] = []
        self._leases: list[Lease] = []

    async def step(self) -> None:
        acts = [self.enqueue] * 4 + [self.claim] * 6 + [self.settle] * 6
        acts += [self.cancel, self.redrive, self.discard, self.upkeep, self.renew, self.churn]
        await self._random.choice(acts)()

    async def member(self) -> Member:
        while len(self._members) < 2:
            self._members.append(await self._queue.join(KINDS, 10, 600.0))
        return self._random.choice(self._members)

    async def enqueue(self) -> None:
        pick, now = self._random.choice, time.time()
        count = self._random.randint(1, 4)
        await self._queue.enqueue(
            new_jobs(
                count,
                kind=pick(KINDS),
                lane=pick(LANES),
                keys=[pick([None, None, f"k{self._random.randrange(30)}"]) for _ in range(count)],
                payloads=["{}"] * count,
                tenant=pick(["a", "b"]),
                priority=pick(list(Priority)),
                log=pick([None, "paper", "book"]),
                parent_id=pick([None, "p1"]),
                run_at=pick([None, None, now + 0.01, now + 100]),
                deadline=pick([None, None, now + 0.02, now + 100]),
                max_retries=pick([0, 3]),
                replace_finished=pick([True, False]),
            )
        )

    async def claim(self) -> None:
        lane_of = {"laned": lambda payload: "api", "guessed": self._guess}
        known = {kind: KindDefaults(30.0, 3, lane_of.get(kind)) for kind in KINDS}
        want = Want(self._random.randint(0, 3), known, True, lanes=self._random.randint(0, 3))
        self._leases += (await (await self.member()).exchange([], [], want)).leases

    def _guess(self, payload: str) -> str:
        if self._random.random() < 0.2:
            raise ValueError("no lane for this")
        return "child"

    async def settle(self) -> None:
        self._random.shuffle(self._leases)
        ended, self._leases = self._leases[:2], self._leases[2:]
        if self._random.random() < 0.1:
            self._leases += ended  # and once more, later
        member = await self.member()
        await member.exchange([self._end(lease) for lease in ended], [], None)

    def _end(self, lease: Lease) -> Settlement:
        now, outcome = time.time(), self._random.choice(list(Outcome))
        news = self._random.choice([None, *News])
        report = None if news is None else Report(news, retry_after=0.01)
        waits = self._random.choice([None, "api"]) if outcome is Outcome.RELEASED else None
        later = self._random.choice([0.0, now + 0.01, now + 50])
        if outcome in (Outcome.RETRY, Outcome.RELEASED):
            later = later or now
        return Settlement(
            lease, outcome, now - 1, now, '"r"', error_of(), later, None, waits, report
        )

    async def cancel(self) -> None:
        some = [job.id for job in await self._queue.find(JobFilter(), 20)]
        await self._queue.cancel(JobFilter(ids=some[:: self._random.randint(2, 6)]))

    async def redrive(self) -> None:
        await self._queue.redrive(JobFilter(tenant=self._random.choice(["a", "b"])))

    async def discard(self) -> None:
        await self._queue.discard(JobFilter(kind=self._random.choice(KINDS), log="book"))

    async def upkeep(self) -> None:
        await (await self.member()).upkeep()
        await self._queue.retain()

    async def renew(self) -> None:
        (await self.member()).renew({}, self._leases[:1])

    async def churn(self) -> None:
        """A member leaves; what it had started is lost with it."""
        member = await self.member()
        for lease in self._leases[:2]:
            member.mark_started(lease)
        self._members.remove(member)
        await member.leave()

    async def end(self) -> None:
        for member in self._members:
            await member.leave()


def told(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every key of the queue, as it is; and what the rows say it should be."""
    tag = parse(url).tag
    with redis.Redis.from_url(url.partition("?")[0], decode_responses=True) as server:
        read = {"zset": _members, "set": server.smembers, "hash": server.hgetall}
        found: dict[str, Any] = {}
        for key in set(server.scan_iter(f"{tag}*", 10_000)):
            name, kind = key.removeprefix(f"{tag}:"), server.type(key)
            if kind in read:
                found[name] = read[kind](server, key) if kind == "zset" else read[kind](key)
    should: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    specs = {seq: json.loads(text) for seq, text in found.get("specs", {}).items()}
    assert set(specs) == set(found.get("payloads", {}))
    for seq, spec in specs.items():
        row = {k: v for k, v in found[f"job:{seq}"].items() if v != ""}
        _place(seq, row, spec, found, should, counts)
    should["counts"] = {name: str(count) for name, count in counts.items()}
    return found, should


def _members(server: Any, key: str) -> set[str]:
    return set(server.zrange(key, 0, -1))


def _place(
    seq: str, row: Any, spec: Any, found: Any, should: dict[str, Any], counts: Counter[str]
) -> None:
    """Add where a job belongs to `should`."""

    def add(name: str, member: str = seq) -> None:
        should.setdefault(name, set()).add(member)

    state, kind, lane = row.get("state", "queued"), spec["kind"], row.get("lane", "")
    counts[f"{state}\n{kind}"] += 1
    own = should.setdefault(f"counts:{spec['tenant']}", {})
    own[f"{state}\n{kind}"] = str(int(own.get(f"{state}\n{kind}", 0)) + 1)
    add("ids", row["id"])
    if "log" in spec:
        add(f"log_jobs:{spec['tenant']}\n{spec['log']}")
    if "parent_id" in spec:
        add(f"children:{spec['parent_id']}")
    if "key" in row:
        should.setdefault("keys", {})[f"{spec['tenant']}\n{kind}\n{row['key']}"] = seq
    if state == "queued":
        add(f"queued:{kind}")
        if "deadline" in row:
            add("deadlines")
        if "waits_lane" in row:
            add(f"expecting:{row['waits_lane']}")
        if seq in found.get("scheduled", set()):
            add("scheduled")
            add("put_off")
        else:
            prefix = "alone" if int(row.get("crashes", 0)) else "line"
            add(f"{prefix}:{lane}\n{kind}", row["place"])
            if lane not in ("", UNKNOWN_LANE):
                add(f"lines:{kind}", lane)
    if "holder" in row:
        assert state in ("running", "cancelled")
        add(f"held:{row['holder']}")
        if state == "cancelled":
            add(f"stopping:{row['holder']}")
    elif state == "failed":
        add("failed")
    elif state != "queued":
        add("finished")


CHECKED = (
    *(
        "ids",
        "log_jobs:",
        "children:",
        "keys",
        "queued:",
        "deadlines",
        "scheduled",
        "put_off",
        "line:",
        "alone:",
    ),
    *("held:", "stopping:", "failed", "finished", "counts", "expecting:"),
)


def feeds(url: str) -> None:
    """The newest entries of every log are the newest of that log in its tenant's feed."""
    tag = parse(url).tag
    with redis.Redis.from_url(url.partition("?")[0], decode_responses=True) as server:
        fed: dict[str, dict[str, list[tuple[int, str]]]] = {}
        for key in set(server.scan_iter(f"{tag}:feed:*", 10_000)):
            logs = fed.setdefault(key.removeprefix(f"{tag}:feed:"), {})
            for _, entry in server.xrange(key):
                logs.setdefault(entry["log"], []).append((int(entry["version"]), entry["entry"]))
        for key in set(server.scan_iter(f"{tag}:log:*", 10_000)):
            tenant, log = key.removeprefix(f"{tag}:log:").split("\n")
            entries = list(enumerate(server.lrange(key, 0, -1), 1))
            assert fed[tenant][log][-len(entries) :] == entries, key


def check(url: str) -> None:
    found, should = told(url)
    feeds(url)
    for name in {*found, *should}:
        if name.startswith(CHECKED):
            assert (found.get(name) or None) == (should.get(name) or None), name
        elif name.startswith("lines:"):  # one in which nobody waits goes with the next look
            assert should.get(name, set()) <= found[name], name


@pytest.mark.parametrize("flavour", ["redis", "valkey"])
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(4))
async def test_indexes_say_what_the_rows_say(flavour: str, seed: int) -> None:
    url = f"{redis_url(flavour)}?namespace={new_id()}"
    queue = RedisQueue(url, retention_seconds=0.05, lane_config=lane_config)
    await queue.open()
    chaos = Chaos(queue, seed)
    seen: set[JobState] = set()
    for number in range(300):
        await chaos.step()
        if number % 10 == 9:
            check(url)
            seen |= {job.state for job in await queue.find(JobFilter(), 1000)}
    assert seen == set(JobState), "everything has happened"
    await chaos.end()
    await queue.close()


async def test_jobs_that_the_version_before_has_left_in_an_index_of_ours_are_let_be() -> None:
    """It starts and deletes jobs, and knows nothing of `put_off`."""
    url = f"{redis_url('redis')}?namespace={new_id()}"
    queue = RedisQueue(url)
    await queue.open()
    member = await queue.join(["work"], 1, 60.0)
    await queue.enqueue(new_jobs(1))
    lease = await claim_one(member)
    tag, later = parse(url).tag, time.time() + 3600
    with redis.Redis.from_url(url.partition("?")[0], decode_responses=True) as server:
        server.zadd(f"{tag}:put_off", {str(lease.seq): later, str(lease.seq + 1): later})
        await member.upkeep()
        assert server.zrange(f"{tag}:put_off", 0, -1) == []
    assert await claim(member) == [], "it runs"
    assert await settle(member, completed(lease)) == []
    await member.leave()
    await queue.close()
