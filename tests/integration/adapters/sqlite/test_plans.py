"""How SQLite goes about the statements of the hot path: by index, whatever the backlog.

A plan is a promise about cost that a small test can check: a scan of `jobs`, or a sort of it,
would make a claim with a million jobs queued a thousand times slower than with a thousand.
"""

import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.sql import selection
from penstock.adapters.sqlite import SqliteQueue, claim, pick
from penstock.adapters.sqlite.database import connect
from penstock.adapters.sqlite.documents.vectors import Matrix
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.model.job import JobState
from penstock.model.lane import LaneConfig
from penstock.ports.queue import JobFilter, KindDefaults, Want
from tests.conformance.document_support import (
    DOCUMENT_STORES,
    MODEL,
    TENANT,
    add,
    ref_of,
    vector_of,
)

NOW = time.time()
# NOW is when the tests were collected: what is to stay in the future must outlast the whole suite.
DAY = 86400


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[sqlite3.Connection]:
    """A file with some of everything, and the statistics that come with it."""
    queue = SqliteQueue(f"sqlite:///{tmp_path}/jobs.db", durable=False)
    await queue.open()
    await queue.close()
    with closing(queue.connect()) as connection:
        fill(connection)
        yield connection


def fill(connection: sqlite3.Connection, count: int = 2000) -> None:
    rows = []
    (start,) = connection.execute("SELECT coalesce(max(seq), 0) FROM jobs").fetchone()
    for n in range(start, start + count):
        state = ("queued", "queued", "queued", "running", "completed", "failed", "cancelled")[n % 7]
        ready = 1 if state == "queued" and n % 3 else 0
        rows.append(
            {
                "id": f"{n:032x}",
                "tenant": f"t{n % 3}",
                "kind": f"k{n % 5}",
                "state": state,
                "ready": ready,
                "turn": float(n),
                "holder": n % 4 if state == "running" else None,
                "deadline": NOW + DAY + n if n % 10 == 0 else None,
                "log": f"log{n % 50}" if n % 2 else None,
                "key": f"key{n}" if n % 2 else None,
                "finished_at": NOW if state in ("completed", "failed", "cancelled") else None,
                "now": NOW,
            }
        )
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO jobs (id, tenant, kind, payload, state, priority, band, turn, ready, since,"
        " lane, run_at, holder, deadline, log, key, enqueued_at, finished_at)"
        " VALUES (:id, :tenant, :kind, '{}', :state, 50, 50, :turn, :ready, :now, '', :now,"
        " :holder, :deadline, :log, :key, :now, :finished_at)",
        rows,
    )
    connection.execute("COMMIT")


def plan(connection: sqlite3.Connection, statement: str, parameters: Any) -> list[str]:
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
    return [row[3] for row in rows]


def assert_by_index(steps: Sequence[str]) -> None:
    """Jobs are reached through an index (or by seq), and nothing is sorted."""
    for step in steps:
        assert not re.match(r"SCAN (TABLE )?jobs\b", step), steps
        assert "TEMP B-TREE" not in step, steps
    assert any("jobs" in step or "processes" in step for step in steps), steps


class Recorder(Transaction):
    """A transaction that notes what it executes."""

    __slots__ = ("executed",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection, {})
        self.executed: list[tuple[str, Any]] = []

    def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
        self.executed.append((statement, parameters))
        return super().execute(statement, parameters)


SETTLE = ["completed", "failed", "retry", "released", "handed_back", "cancel_seen", "stale"]


@pytest.mark.parametrize("name", [*SETTLE, "progress", "hold", "place"])
def test_statement_on_a_batch_finds_each_job_by_its_number(
    connection: sqlite3.Connection, name: str
) -> None:
    batch = json.dumps([[n, str(n), 1, 1.0, 2.0, "{}", 3.0, {}] for n in range(1, 100)])
    parameters = {"batch": batch, "history_limit": 100, "log_limit": 1, "now": NOW}
    parameters |= {"until": NOW, "member": 1}
    for suffix in ("", " RETURNING jobs.seq") if name != "stale" else ("",):
        steps = plan(connection, sql(name) + suffix, parameters)
        assert_by_index(steps)
        assert any("jobs USING INTEGER PRIMARY KEY" in step for step in steps), steps


@pytest.mark.parametrize("kinds", [1, 5, 100])
def test_claim_reads_the_heads_of_the_line(connection: sqlite3.Connection, kinds: int) -> None:
    parameters: list[Any] = []
    for n in range(kinds):
        parameters += [1, "", f"k{n}"]
    steps = plan(connection, pick._pick_statement(kinds), [*parameters, 10])

    assert_by_index(steps)
    heads = [step for step in steps if "jobs_claim (ready=? AND lane=? AND kind=?)" in step]
    assert len(heads) == kinds, steps
    if kinds > 1:
        assert any("MERGE" in step for step in steps), steps


SINGLE = {
    "lease": {"member": 1, "now": NOW, "seqs": json.dumps(list(range(1, 50)))},
    "adopt": {"seqs": json.dumps([1, 2]), "timeout": 1.0, "max_retries": 1},
    "held": {"member": 1},
    "due": {"now": NOW, "limit": 1000},
    "next_due": {},
    "pending": {"now": NOW, "unknown": "?"},
    "chores": {"clock": NOW},
    "bring_forward": {"now": NOW, "limit": 10},
    "overdue": {"now": NOW, "error": "{}", "record": "{}", "history_limit": 100, "limit": 10},
    "aged": {"lane": "", "kind": "k1", "band": 90, "before": NOW, "limit": 100, "heads": 1000},
    "redrive_jobs": {"seqs": "[1]", "now": NOW, "record": "{}", "history_limit": 100},
}


@pytest.mark.parametrize("name", SINGLE)
def test_statement_goes_by_index(connection: sqlite3.Connection, name: str) -> None:
    steps = plan(connection, sql(name), SINGLE[name])
    assert_by_index([step for step in steps if "cascades" not in step])  # all of them are due


JOIN = (
    "INSERT INTO processes (number, id, host, pid, boot, life, kinds, max_workers, joined_at,"
    " heartbeat_at, lease_until) VALUES (:number, :number, '', 1, '', '', '[]', 1, 1, 1, :until)"
)


def any_lane(name: str) -> LaneConfig:
    return LaneConfig()


WANT = Want(100, {f"k{n}": KindDefaults(1.0, 1) for n in range(5)}, True)


def test_whole_claim_goes_by_index(connection: sqlite3.Connection) -> None:
    """Every statement a claim with something to stage, adopt and fail really executes."""
    connection.execute("UPDATE jobs SET lane = '?' WHERE ready = 1 AND seq % 11 = 0")
    connection.execute("UPDATE jobs SET deadline = 1 WHERE state = 'queued' AND seq % 20 = 1")
    connection.execute("UPDATE jobs SET ready = 2, crashes = 1 WHERE ready = 1 AND seq % 13 = 0")
    connection.execute(JOIN, {"number": 1, "until": NOW + DAY})
    connection.execute(JOIN, {"number": 2, "until": 1})
    connection.execute("BEGIN IMMEDIATE")
    recorder = Recorder(connection)
    claimed = claim.claim(recorder, 1, WANT, {}, any_lane)
    connection.execute("ROLLBACK")

    assert len(claimed.leases) == 100
    assert len(recorder.executed) > 10
    for statement, parameters in recorder.executed:
        steps = plan(connection, statement, parameters)
        on_jobs = [step for step in steps if "jobs" in step or "TEMP" in step]
        if on_jobs:
            assert_by_index(on_jobs)


def test_children_of_a_cancelled_job_are_found_by_index(connection: sqlite3.Connection) -> None:
    """A cancel of jobs with and without children, and what follows."""
    fill(connection)
    parents = "SELECT id FROM jobs WHERE state = 'running' LIMIT 1"
    connection.execute(
        f"UPDATE jobs SET attached = 1, parent_id = ({parents}) WHERE state = 'queued'"
    )
    connection.execute("BEGIN IMMEDIATE")
    recorder = Recorder(connection)
    running = [one for (one,) in connection.execute("SELECT id FROM jobs WHERE state = 'running'")]
    cancelled = run(selection.cancel(recorder.shared, JobFilter(ids=running[:100])))
    assert run(selection.cancel_children(recorder.shared))
    connection.execute("ROLLBACK")

    assert len(cancelled) == 100
    for statement, parameters in recorder.executed:
        steps = plan(connection, statement, parameters)
        on_jobs = [step for step in steps if re.search(r"\b(jobs|parent)\b", step)]
        assert not any(step.startswith("SCAN") for step in on_jobs), steps
        if "attached" in statement:
            assert any("jobs_attached" in step for step in steps), steps


@contextmanager
def counted(connection: sqlite3.Connection) -> Iterator[list[None]]:
    """What is done in the block, an entry for every ten steps."""
    steps: list[None] = []
    connection.set_progress_handler(lambda: steps.append(None), 10)
    yield steps
    connection.set_progress_handler(None, 0)


def claim_steps(connection: sqlite3.Connection) -> int:
    """What a claim costs, in steps of SQLite's machine (not time, so that it is exact)."""
    connection.execute("BEGIN IMMEDIATE")
    with counted(connection) as steps:
        claimed = claim.claim(Transaction(connection, {}), 1, WANT, {}, any_lane)
    connection.execute("ROLLBACK")
    assert len(claimed.leases) == 100
    return len(steps)


def test_cost_of_a_claim_does_not_follow_the_backlog(connection: sqlite3.Connection) -> None:
    connection.execute(f"UPDATE jobs SET run_at = run_at + {DAY} WHERE ready = 0")
    connection.execute(JOIN, {"number": 1, "until": NOW + DAY})
    small = claim_steps(connection)
    fill(connection, 30_000)
    connection.execute(f"UPDATE jobs SET run_at = run_at + {DAY} WHERE ready = 0")

    assert claim_steps(connection) <= 1.2 * small


def work_left(connection: sqlite3.Connection, kinds: list[str]) -> bool:
    values = {"kinds": json.dumps(kinds), "none": "", "unknown": "?"}
    return bool(connection.execute(sql("any_work_of"), values).fetchone()[0])


@pytest.mark.parametrize("lane", ["", "host:a"])
def test_whether_work_is_left_does_not_follow_the_backlog_of_other_kinds(
    connection: sqlite3.Connection, lane: str
) -> None:
    connection.execute("UPDATE jobs SET lane = ?, ready = 1 WHERE state = 'queued'", (lane,))
    connection.execute("UPDATE jobs SET holder = NULL, state = 'completed' WHERE ready = 0")
    kinds = [kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM jobs")]
    with counted(connection) as steps:
        assert not work_left(connection, ["other"])
    assert len(steps) < 30
    for kind in kinds:
        assert work_left(connection, ["other", kind])
    connection.execute("UPDATE jobs SET ready = 0, state = 'completed' WHERE kind <> ?", kinds[:1])
    assert [work_left(connection, [kind]) for kind in kinds[:2]] == [True, False]


@pytest.mark.parametrize("others", [10, 300])
async def test_following_one_document_costs_the_same_in_any_store(
    tmp_path: Path, others: int
) -> None:
    """A search after a document was published reads the vectors of that one, and no others."""
    async with DOCUMENT_STORES["sqlite"](tmp_path) as documents:
        for n in range(others):
            await add(documents, ref_of(f"other-{n}"), f"sun {n}")
        with closing(connect(tmp_path / "documents.db", "NORMAL")) as connection:
            matrix = Matrix(TENANT, MODEL)
            matrix.follow(connection)
            await add(documents, ref_of("new"), "moon", "rain")
            with counted(connection) as steps:
                matrix.follow(connection)
    found = matrix.search(vector_of("moon"), None, others + 2)
    assert len(found) == others + 2
    assert len(steps) < 30


def test_jobs_of_a_member_and_the_cancelled_among_them_are_found_by_index(
    connection: sqlite3.Connection,
) -> None:
    steps = plan(connection, "SELECT seq FROM jobs WHERE holder = ? AND state = 'cancelled'", (1,))
    assert any("jobs_held" in step for step in steps), steps


def test_keys_are_looked_up_by_index(connection: sqlite3.Connection) -> None:
    steps = plan(
        connection,
        "SELECT key, id, payload, state FROM jobs"
        " WHERE tenant = ? AND kind = ? AND key IN (SELECT value FROM json_each(?))",
        ("t1", "k1", '["key1"]'),
    )
    assert any("jobs_key" in step for step in steps), steps


FILTERS = {
    "by id": (JobFilter(ids=["a", "b"]), ("sqlite_autoindex_jobs", "jobs")),
    "dead letters of a kind": (JobFilter(states=[JobState.FAILED], kind="k1"), ("jobs_dead",)),
    "of a log": (JobFilter(tenant="t1", log="log1"), ("jobs_log",)),
    "of a lane": (JobFilter(lane="api"), ("jobs_lane",)),
    "of a lane, and later": (JobFilter(lane="api", enqueued_after=NOW), ("jobs_lane",)),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filter_goes_by_index(connection: sqlite3.Connection, name: str) -> None:
    where, indexes = FILTERS[name]
    text, values = selection.condition(where)
    given = {
        name: json.dumps(one) if isinstance(one, list) else one for name, one in values.items()
    }
    steps = plan(connection, sql(f"SELECT seq FROM jobs WHERE {text}"), given)

    assert any("USING" in step and indexes[0] in step for step in steps), steps
