"""Documents that wait for a parser spend nothing, and tenants take turns at the parsers."""

from dataclasses import replace

import pytest

from penstock import Job, Penstock
from penstock.documents.jobs import PARSE
from penstock.documents.parse import pool
from penstock.model.document import DocumentState
from tests.support.document_app import SOON, Shelf, completed, failed
from tests.support.waiting import until

CHILD = """
import time
from penstock.documents.parse import child

def read(data, *options):
    time.sleep({b"A WHILE": 0.6, b"SECONDS": 1.2, b"FOREVER": 3600}.get(data[:7], 0))
    if data.startswith(b"TOO BIG"):
        bytearray(10**10)
    return reads(data, *options)

reads, child.read = child.read, read
child.main()
"""
"""A real child, to which some documents are slow or large."""


@pytest.fixture(autouse=True)
def slow_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_COMMAND", ("-c", CHILD))


async def parsed(app: Penstock, tenant: str | None = None) -> list[Job]:
    """The jobs that parse, in the order in which they ended."""
    jobs = await app.jobs(kind=PARSE, tenant=tenant, limit=100)
    return sorted(jobs, key=lambda job: (job.finished_at or float("inf"), job.id))


@pytest.mark.parametrize(
    ("content", "reason", "message", "seconds"),
    [
        (b"FOREVER", "slow", "not parsed within 1 s", 1.0),
        (b"TOO BIG", "memory", "needs more than 1024 MB", SOON),
    ],
)
async def test_document_that_hits_a_limit_of_its_parser_fails_once_and_for_good(
    shelf: Shelf, content: bytes, reason: str, message: str, seconds: float
) -> None:
    """Also where a job has no more time than a parser."""
    async with shelf.running(parse_seconds=seconds, job_timeout=seconds, max_retries=3) as app:
        await app.documents.add(content, id="a")
        document = await failed(app, "a")
        assert document.message == message
        assert document.error == {
            "type": "ParserError",
            "message": message,
            "retryable": False,
            "reason": reason,
        }
        (dead,) = await until(app.dead_letters, "the dead letter")
        assert (dead.kind, dead.attempts) == (PARSE, 1)
        assert [run.outcome for run in dead.history] == ["failed"]


async def test_waiting_for_a_parser_spends_neither_time_nor_attempts(shelf: Shelf) -> None:
    """The last of those that are taken at a time wait longer than a run may take."""
    app = shelf.farm.app("documents", max_retries=0)
    app.handlers._handlers[PARSE] = replace(app.handlers[PARSE], timeout=6.0)
    async with app.running():
        count = app.documents._tools.parser.worth_having + 1
        for number in range(count):
            await app.documents.add(b"SECONDS, number %d" % number, id=str(number))
        for number in range(count):
            await app.documents.wait(str(number), timeout=SOON)
        await app.drain(SOON)
        jobs = await parsed(app)
        assert [(str(job.state), job.attempts) for job in jobs] == [("completed", 1)] * count


async def test_tenant_with_many_slow_documents_does_not_keep_others_waiting(shelf: Shelf) -> None:
    async with shelf.running(grace_seconds=0.1) as app:
        for number in range(20):
            await app.documents.add(b"A WHILE, number %d" % number, id=str(number), tenant="bob")
        await until(lambda: len(app.documents._tools.parser.pids) == 1, "the parser to be at work")
        for number in range(3):
            await app.documents.add(
                b"Some text, number %d." % number, id=str(number), tenant="alice"
            )
        for number in range(3):
            await completed(app, str(number), tenant="alice")
        hers = await parsed(app, "alice")
        last, asked = hers[-1].finished_at, max(job.enqueued_at for job in hers)
        assert last is not None
        ahead = [
            job
            for job in await parsed(app, "bob")
            if job.finished_at is not None and asked < job.finished_at < last
        ]
        # One in work and one that is next when she comes, then one for each of hers; more where
        # the machine stood still. Without turns it would be all of his.
        assert len(ahead) <= 15
        assert {job.attempts for job in hers} == {1}


async def test_other_jobs_run_while_documents_wait_for_a_parser(shelf: Shelf) -> None:
    async with shelf.running(max_workers=2, grace_seconds=0.1) as app:
        for number in range(20):
            await app.documents.add(b"FOREVER %d" % number, id=str(number))
        await until(lambda: app.documents._tools.parser.pids, "the parser to be at work", SOON)
        for _ in range(3):
            job = await app.enqueue("noop")
            assert str((await app.wait(job.id, timeout=SOON)).state) == "completed"
        held = await app.jobs(kind=PARSE, states=["running"], limit=100)
        assert len(held) <= app.documents._tools.parser.worth_having
        assert (await app.documents.get("19")).state is not DocumentState.FAILED
