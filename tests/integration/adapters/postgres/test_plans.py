"""How PostgreSQL goes about the statements of the hot path: by index, whatever the backlog and
whatever it believes to know of the table.

The table is never analysed here, and the sessions have planned their statements while it was
empty: just as it is when a deploy starts with a new queue and a backlog builds up in a minute.
"""

import re
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.adapters.postgres import PostgresQueue
from penstock.adapters.postgres.database import Transaction, statement
from penstock.adapters.sql import selection
from penstock.adapters.sql.dialect import numbered
from penstock.model.job import JobState
from penstock.ports.queue import (
    Exchange,
    JobFilter,
    KindDefaults,
    Lease,
    Member,
    ParentRun,
    Settlement,
    Want,
)
from tests.conformance.lane_support import down, up
from tests.conformance.support import (
    KIND,
    LONG,
    cancel_seen,
    completed,
    failed,
    handed_back,
    new_jobs,
    no_limits,
    released,
    retry,
)
from tests.support.postgres import Psql, new_url, psql

pytestmark = pytest.mark.usefixtures("patient_postgres")
BACKLOG = 20_000
TABLES = "jobs|lanes|lines|slots|changes"


@pytest.fixture
def url() -> str:
    return new_url()


@pytest.fixture
async def queue(url: str) -> AsyncIterator[PostgresQueue]:
    queue = PostgresQueue(url, lane_config=no_limits)
    await queue.open()
    yield queue
    await queue.close()


@pytest.fixture
async def mine(queue: PostgresQueue, url: str) -> AsyncIterator[Psql]:
    async with psql(url) as mine:
        yield mine


async def member_of(queue: PostgresQueue) -> Member:
    return await queue.join([KIND, "other"], 10, LONG)


async def fill(mine: Psql, count: int = BACKLOG) -> None:
    """A backlog in every state, in lanes and without, and no statistics of it."""
    await mine.execute("ALTER TABLE penstock.jobs SET (autovacuum_enabled = off)")
    await mine.execute(
        "INSERT INTO penstock.jobs (id, tenant, kind, payload, state, priority, band, turn, ready,"
        " since, lane, run_at, holder, enqueued_at, finished_at, log, key, deadline)"
        " SELECT n::text, 't' || n % 3, (ARRAY['work', 'other', 'foreign'])[n % 3 + 1], '{}',"
        " (ARRAY['queued', 'queued', 'queued', 'completed', 'failed', 'cancelled'])[n % 6 + 1],"
        " 50, 50, n, CASE WHEN n % 6 < 2 THEN 1 ELSE 0 END, $2::float8,"
        " CASE WHEN n % 5 = 0 THEN 'api' WHEN n % 7 = 0 THEN 'lane' || n % 100 ELSE '' END,"
        " $2::float8 + 1e6, NULL, $2::float8, $2::float8, 'log' || n % 50, 'key' || n,"
        " CASE WHEN n % 10 = 0 THEN $2::float8 + 1e6 END FROM generate_series(1, $1::int) AS n",
        count,
        time.time(),
    )


def want(limit: int = 10, lanes: int = 0, *kinds: str) -> Want:
    known = {kind: KindDefaults(30.0, 3) for kind in kinds or (KIND, "other")}
    return Want(limit, known, True, lanes)


async def trip(member: Member, *settlements: Settlement, wanted: Want | None = None) -> Exchange:
    return await member.exchange(settlements, [], wanted)


async def reads(mine: Psql, statement: str, *values: Any) -> int:
    """How many pages a statement reads, also inside the functions it calls; it is undone."""
    transaction = mine.connection.transaction()
    await transaction.start()
    rows = await mine.fetch(f"EXPLAIN (ANALYZE, BUFFERS, TIMING off) {statement}", *values)
    await transaction.rollback()
    text = next((row[0] for row in rows if "Buffers" in row[0]), "")
    return sum(int(number) for number in re.findall(r"(?:hit|read)=(\d+)", text))


async def join(mine: Psql) -> None:
    """The membership that the statements below are about."""
    await mine.execute(
        "INSERT INTO penstock.processes (number, id, host, pid, boot, life, kinds, max_workers,"
        " joined_at, heartbeat_at, lease_until) OVERRIDING SYSTEM VALUE"
        " VALUES (1, 'me', '', 1, '', '', '{}', 1, 1, 1, 1e12)"
    )


CLAIM = "SELECT * FROM penstock.claim_1(1, $1, 50, true, NULL, 1)"
SETTLE = "SELECT penstock.completed_1(1, 'me', $1, $2, $3, $4, $4, $5)"
REFUSE = "SELECT penstock.refused_1(1, 'me', $1, $2, $3)"
PENDING = "SELECT * FROM penstock.pending_1(1, 'me', $1, true, 1)"
PAGES_PER_JOB = 40


@pytest.mark.parametrize("kinds", [["work"], ["work", "other"]])
async def test_plans_made_on_an_empty_table_are_right_for_a_full_one(
    mine: Psql, kinds: list[str]
) -> None:
    seqs = list(range(1, 51))
    leases = (seqs, [str(seq) for seq in seqs], [0] * 50)
    settled = (*leases, [1.0] * 50, ["null"] * 50)
    await join(mine)
    for _ in range(7):  # more often than PostgreSQL thinks about it
        await reads(mine, CLAIM, kinds)
        await reads(mine, SETTLE, *settled)
        await reads(mine, REFUSE, *leases)
        await reads(mine, PENDING, kinds)
    await fill(mine)
    await mine.execute("UPDATE penstock.jobs SET state = 'running', holder = 1 WHERE seq <= 50")
    # Much is held; what is settled is found by its number all the same.
    await mine.execute("UPDATE penstock.jobs SET holder = 1 WHERE state = 'completed'")

    assert await reads(mine, CLAIM, kinds) < 50 * PAGES_PER_JOB
    assert await reads(mine, SETTLE, *settled) < 50 * PAGES_PER_JOB
    assert await reads(mine, REFUSE, *leases) < 50 * PAGES_PER_JOB
    assert await reads(mine, PENDING, kinds) < 100


async def test_cost_of_a_claim_does_not_follow_the_backlog(mine: Psql) -> None:
    await fill(mine, 2000)
    small = await reads(mine, CLAIM, ["work", "other"])
    await fill_more(mine)
    assert await reads(mine, CLAIM, ["work", "other"]) <= 1.5 * small


async def fill_more(mine: Psql) -> None:
    await mine.execute(
        "INSERT INTO penstock.jobs (id, tenant, kind, payload, priority, band, turn, ready, since,"
        " lane, run_at, enqueued_at)"
        " SELECT 'more' || n, 't', (ARRAY['work', 'foreign'])[n % 2 + 1], '{}', 50, 50, n + 1e6, 1,"
        " 1, '', 1, 1 FROM generate_series(1, 30000) AS n"
    )


class Recorder:
    """Every statement that transactions execute, with its plan at that moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plans: dict[str, str] = {}
        for name in ("fetch", "one", "fetchval", "execute"):
            self._watch(monkeypatch, name)

    def _watch(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        original = getattr(Transaction, name)

        async def watched(tx: Transaction, statement: str, *values: Any, **named: Any) -> Any:
            await self._explain(tx, statement, values, named)
            return await original(tx, statement, *values, **named)

        monkeypatch.setattr(Transaction, name, watched)

    async def _explain(self, tx: Transaction, statement: str, values: Any, named: Any) -> None:
        if statement not in self.plans:
            text, given = tx._bound(statement, values, named)
            rows = await tx.connection.fetch(f"EXPLAIN {text}", *given)
            self.plans[statement] = "\n".join(row[0] for row in rows)

    def scans(self) -> dict[str, str]:
        """Plans that read a table that can be long from one end to the other."""
        # A table of lanes as a whole is read by whoever asks for all that are in trouble.
        troubled = ("to_probe", "take_probes", "to_try")
        # What a clock left ahead is looked for once by a member, and when the clock is set back.
        ahead = ("any_ahead", "lanes_ahead", "set_lines_back")
        # Lines are looked through for old ones outside of any transaction, by statistics.
        allowed = ("forget_lanes", "lost_slots", "oldest_lines", *troubled, *ahead)
        return {
            statement: plan
            for statement, plan in self.plans.items()
            if re.search(rf"Seq Scan on ({TABLES})\b", plan)
            and not any(word in statement for word in allowed)
        }


async def test_whatever_a_worker_process_does_goes_by_index(
    queue: PostgresQueue, mine: Psql, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(mine)
    recorder = Recorder(monkeypatch)
    member, other = await member_of(queue), await member_of(queue)
    await queue.enqueue(new_jobs(20, lane="api"))
    await queue.enqueue(new_jobs(5, lane="?", timeout=None, max_retries=None))
    await queue.enqueue(new_jobs(5, run_at=time.time() + 0.05))
    await queue.enqueue(new_jobs(5, deadline=time.time() + 0.05))
    leases: list[Lease] = []
    while not any(lease.lane for lease in leases) or len(leases) < 40:
        leases += (await trip(member, wanted=want(20, 5))).leases
    in_lane = [lease for lease in leases if lease.lane][:3]
    plain = [lease for lease in leases if not lease.lane]
    await queue.cancel(JobFilter(ids=[plain[0].id]))
    ends = [cancel_seen, failed, retry, released, handed_back, completed]
    await trip(member, *(end(lease) for end, lease in zip(ends, plain, strict=False)))
    await trip(member, up(in_lane[0]), down(in_lane[1]), down(in_lane[2]))
    await queue.redrive(JobFilter(states=[JobState.FAILED], kind=KIND, tenant="t1", log="log7"))
    await queue.discard(JobFilter(ids=["5"]))
    run = ParentRun(plain[6].token, member.id)
    await queue.enqueue(new_jobs(5, parent_id=plain[6].id, parent_run=run, attached=True))
    await queue.cancel(JobFilter(ids=[plain[6].id]))
    await other.upkeep()
    await member.leave()
    await other.leave()

    assert len(recorder.plans) > 30
    assert recorder.scans() == {}
    for name in ("mark_cascades", "cascade_children", "forget_cascades"):
        assert "jobs_attached" in recorder.plans[name], recorder.plans[name]


async def test_a_look_at_what_sleeps_reads_one_job(queue: PostgresQueue, mine: Psql) -> None:
    await fill(mine)
    await mine.execute("UPDATE penstock.jobs SET ready = 0 WHERE state = 'queued'")
    await mine.execute("VACUUM ANALYZE penstock.jobs")
    text, _ = numbered(statement("chores", "penstock"))

    assert await reads(mine, text) < 20


RECORD = (
    "SELECT penstock.record_step_1(1, 'me', false, 1, '1', 0, $1, 'step', 'hash', 1, '', NULL, 1,"
    " 1, 2, '1', NULL)"
)


async def test_recording_a_step_reads_no_other_steps(mine: Psql) -> None:
    await join(mine)
    await fill(mine, 2000)
    await mine.execute("ALTER TABLE penstock.steps SET (autovacuum_enabled = off)")
    await mine.execute("UPDATE penstock.jobs SET holder = 1, state = 'running' WHERE seq = 1")
    for n in range(10):  # planned while there is none
        assert await mine.fetchval(RECORD, f"first {n}")
        await mine.execute("DELETE FROM penstock.steps")
    await mine.execute(
        "INSERT INTO penstock.steps (job, key, name, arguments, occurrence, version, attempts,"
        " started_at, position) SELECT 1 + n % 3, md5(n::text), 'step', '', 1, '', 1, 1, n"
        " FROM generate_series(1, $1::int) AS n",
        BACKLOG,
    )

    assert await reads(mine, RECORD, "last") < PAGES_PER_JOB


FILTERS = {
    "by id": (JobFilter(ids=["1", "2"]), "jobs_id_key"),
    "dead letters of a kind": (JobFilter(states=[JobState.FAILED], kind="work"), "jobs_dead"),
    "of a log": (JobFilter(tenant="t1", log="log1"), "jobs_log"),
    "of a lane": (JobFilter(lane="lane7"), "jobs_lane"),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_filter_goes_by_index(mine: Psql, name: str) -> None:
    where, index = FILTERS[name]
    condition, values = selection.condition(where)
    await fill(mine)
    await mine.execute("ANALYZE penstock.jobs")
    asked = statement(f"SELECT seq FROM penstock.jobs WHERE {condition}", "penstock")
    text, names = numbered(asked)
    rows = await mine.fetch(f"EXPLAIN {text}", *(values[name] for name in names))
    assert index in "\n".join(row[0] for row in rows)
