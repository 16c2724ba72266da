"""A process dies on a document's way, at any point: what is there in the end is the same."""

import asyncio
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest

from penstock import JobState, Penstock
from penstock.adapters.sqlite.transaction import sql
from penstock.documents.embed_batches import MAX_TEXTS
from penstock.documents.jobs import EMBED, PARSE
from penstock.model.document import DocumentState
from penstock.ports.queue import JobFilter
from tests.support.apps.documents import FETCH_STEPS, STEPS
from tests.support.counting_server import Answer, CountingServer
from tests.support.document_app import LANE, SOON, Shelf, completed, failed, receipts_of, shelf_in
from tests.support.embedder import EmbedderServer
from tests.support.waiting import until

HOURS_AGO = time.time() - 7200
TEXT = "\n\n".join(
    f"Section {n}. " + " ".join(f"word{n}x{m} stands here" for m in range(6)) for n in range(90)
)
"""Three batches of chunks."""


async def uploaded(app: Penstock) -> None:
    async def accepted() -> bool:
        return bool(await app.documents.documents())

    await until(accepted, "the upload", SOON)
    await completed(app, "a")
    await app.drain(SOON)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """What is stored in a store when nothing goes wrong."""

    async def run(store: str) -> dict[str, Any]:
        with EmbedderServer() as embedder:
            shelf = shelf_in(store, tmp_path_factory.mktemp("undisturbed"), embedder)
            async with shelf.running() as app:
                await app.enqueue("upload", {"name": "a", "text": TEXT})
                await uploaded(app)
            assert shelf.blobs() == []
            return await shelf.stored()

    @cache
    def stored(store: str) -> dict[str, Any]:
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(asyncio.run, run(store)).result()
        assert 100 < len(found["vectors"]) < 150
        return found

    return stored


CASES = [("sqlite", when, step) for when in ("before", "after") for step in STEPS]
# What the stores write themselves; the rest is the same code.
CASES += [("postgres", "after", step) for step in ("accept", "stage", "second batch", "publish")]


@pytest.mark.parametrize(("store", "when", "step"), CASES, ids=map("-".join, CASES))
async def test_death_at_any_step_changes_nothing(
    shelf_of: Callable[[str], Shelf],
    undisturbed: Callable[[str], dict[str, Any]],
    store: str,
    when: str,
    step: str,
) -> None:
    shelf = shelf_of(store)
    worker = await shelf.farm.start("documents", die=f"{when} {step}")
    async with shelf.farm.app("documents") as app:
        await app.enqueue("upload", {"name": "a", "text": TEXT})
    assert await worker.exit(SOON) == -signal.SIGKILL
    # So that all that is swept for its age is swept now, and nothing that is needed.
    for path in shelf.blobs():
        os.utime(path, (HOURS_AGO, HOURS_AGO))

    async with shelf.running() as app:
        await uploaded(app)
        await until(lambda: not shelf.blobs(), "the originals to be gone")
        receipts = await receipts_of(app, EMBED)

    assert await shelf.stored() == undisturbed(store)
    # One for each answer that was paid for, also where the death was between it and the vectors.
    assert [(one.lane, one.recorded, one.result) for one in receipts] == [
        ("embedder", True, None)
    ] * len(shelf.embedder.requests)
    told = [one.receipt for one in receipts if one.receipt is not None]
    assert {(one.model, one.kept, one.void) for one in told} == {("toy", "vectors", False)}
    lost = when == "before" and step.endswith("batch")
    assert len({one.arguments for one in receipts}) == len(receipts) - lost, "asked once"


@pytest.fixture(scope="module")
def site() -> Iterator[CountingServer]:
    with CountingServer() as site:
        site.answers["/"] = Answer(body=TEXT.encode())
        yield site


def allowing(site: CountingServer) -> dict[str, Any]:
    lanes = {"embedder": LANE, "host:*": {"min_interval_seconds": 0.0}}
    return {"fetch_allow": f"127.0.0.1:{site.port}", "lanes": lanes}


@pytest.fixture(scope="module")
def fetched(undisturbed: Callable[[str], dict[str, Any]], site: CountingServer) -> dict[str, Any]:
    """What is stored of a document that was fetched: only where it came from is different."""
    whole = undisturbed("sqlite")
    (row,) = whole["documents"]
    source, digest = 11, 13
    assert row[source] == ""
    row = (*row[:source], site.url("/a"), *row[source + 1 : digest], *row[digest + 1 :])
    return {**whole, "documents": [row]}


@pytest.mark.parametrize("step", FETCH_STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_death_at_any_step_of_a_fetch_changes_nothing(
    shelf: Shelf, site: CountingServer, fetched: dict[str, Any], when: str, step: str
) -> None:
    settings = allowing(site)
    worker = await shelf.farm.start("documents", die=f"{when} {step}", **settings)
    async with shelf.farm.app("documents", **settings) as app:
        await app.enqueue("upload_url", {"name": "a", "url": site.url("/a")})
    assert await worker.exit(SOON) == -signal.SIGKILL
    for path in shelf.blobs():
        os.utime(path, (HOURS_AGO, HOURS_AGO))

    async with shelf.running(**settings) as app:
        await uploaded(app)
        await until(lambda: not shelf.blobs(), "the originals to be gone")

    stored = await shelf.stored()
    digest = 13
    stored["documents"] = [(*row[:digest], *row[digest + 1 :]) for row in stored["documents"]]
    assert stored == fetched


async def orphan(shelf: Shelf, app: Penstock) -> None:
    """Accept a document and lose its job, as a death between the two does."""
    await app.documents.add(b"some text", id="a")
    shelf.farm.execute("DELETE FROM jobs")


async def test_document_whose_job_was_never_enqueued_is_done_all_the_same(shelf: Shelf) -> None:
    async with shelf.farm.app("documents") as app:
        await orphan(shelf, app)
    async with shelf.running() as app:
        await completed(app, "a")
        assert [job.kind for job in await app.jobs()] == [EMBED, PARSE]


@pytest.mark.parametrize("kind", [PARSE, EMBED])
async def test_document_whose_job_was_cancelled_fails_and_can_be_tried_again(
    shelf: Shelf, kind: str
) -> None:
    shelf.embedder.delay = 1.0 if kind == EMBED else 0.0
    async with shelf.farm.app("documents") as app:
        await app.documents.add(b"some text", id="a")
        if kind == PARSE:
            await app.queue.cancel(JobFilter(kind=PARSE))
    async with shelf.running() as app:
        if kind == EMBED:
            await until(lambda: shelf.embedder.requests, "the request")
            (job,) = await app.jobs(kind=EMBED)
            await app.cancel(job.id)
        document = await failed(app, "a")
        assert document.error == {
            "type": "JobGone",
            "message": f"{kind} was cancelled",
            "retryable": True,
        }
        assert len(shelf.blobs()) == 1, "the original is kept"
        again = await app.documents.retry("a")
        assert (again.state, again.error) == (DocumentState.PROCESSING, document.error)
        assert (await completed(app, "a")).error is None
    assert shelf.blobs() == []


async def test_document_whose_job_timed_out_for_good_fails_with_its_error(shelf: Shelf) -> None:
    shelf.embedder.fault = "hang"
    async with shelf.running(job_timeout=0.5, max_retries=0) as app:
        await app.documents.add(b"some text", id="a")
        document = await failed(app, "a")
        assert document.error is not None
        assert document.error["type"] in ("JobTimeout", "Unavailable")


@pytest.mark.parametrize("kind", [PARSE, EMBED])
async def test_dead_letter_of_a_document_can_be_redriven(shelf: Shelf, kind: str) -> None:
    shelf.embedder.fault = "dimension"
    async with shelf.running() as app:
        if kind == PARSE:
            await app.documents.add(b"PK\x03\x04 no archive", id="a")
        else:
            await app.documents.add(b"some text", id="a")
        document = await failed(app, "a")
        (dead,) = await until(app.dead_letters, "the dead letter")
        assert dead.kind == kind
        shelf.embedder.fault = None
        if kind == PARSE:  # as if the parser could read it by now
            shelf.blobs()[0].write_text("some text")
        assert await app.redrive(JobFilter(kind="ingest.*")) == 1

        async def done() -> bool:
            return (await app.documents.get("a")).state is DocumentState.COMPLETED

        await until(done, "the document", SOON)
        assert (await app.documents.get("a")).generation == document.generation
    assert shelf.blobs() == []


async def test_late_run_of_a_published_document_does_no_harm(
    shelf: Shelf,
) -> None:
    """A process that was taken for dead goes on and publishes; the job is run a second time."""
    async with shelf.running() as app:
        await app.documents.add(TEXT.encode(), id="a")
        await completed(app, "a")
        await app.drain(SOON)
        before = await shelf.stored()
        for job in await app.jobs(kind="ingest.*"):
            again = await app.enqueue(job.kind, job.payload, log=job.log)
            assert (await app.wait(again.id, SOON)).result == {"late": True}
        assert await shelf.stored() == before
        assert (await app.documents.get("a")).state is DocumentState.COMPLETED


def blob_name(letter: str) -> str:
    return f"{letter * 2}/{letter * 64}-{0:032x}"


async def test_what_uploads_left_behind_is_swept_when_it_is_old(shelf: Shelf) -> None:
    folder = shelf.farm.folder / "jobs.db-blobs"
    old, new = (f"unfinished/{0:032x}", blob_name("a")), (f"unfinished/{1:032x}", blob_name("b"))
    others = ("work/report.pdf", "ab/ab.txt")
    for name in (*old, *new, *others):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("left behind")
        if name not in new:
            os.utime(path, (HOURS_AGO, HOURS_AGO))

    def left() -> set[str]:
        return {str(path.relative_to(folder)) for path in shelf.blobs()}

    async with shelf.running():
        await until(lambda: left() == {*new, *others}, "for cleanup")


async def test_failed_documents_keep_their_originals_however_old(shelf: Shelf) -> None:
    async with shelf.running() as app:
        await app.documents.add(b"PK\x03\x04 no archive", id="a")
        await failed(app, "a")
    (blob,) = shelf.blobs()
    os.utime(blob, (HOURS_AGO, HOURS_AGO))
    orphan = shutil.copy2(blob, f"{str(blob)[:-32]}{0:032x}")
    assert len(shelf.blobs()) == 2
    async with shelf.running():
        await until(lambda: len(shelf.blobs()) == 1, f"{orphan} to be swept")
    assert shelf.blobs() == [blob]


async def test_reconciling_costs_one_query_on_an_index(shelf: Shelf) -> None:
    async with shelf.farm.app("documents"):
        plan = shelf.farm.query(
            "EXPLAIN QUERY PLAN SELECT number FROM documents WHERE state = 'processing'"
            " AND generation > 0 AND accepted_at < 1e9 ORDER BY generation LIMIT 100"
        )
    assert [row[3] for row in plan] == [
        "SEARCH documents USING INDEX documents_processing (generation>?)"
    ]


async def test_looking_for_unused_vectors_reads_no_vector_and_no_text(shelf: Shelf) -> None:
    async with shelf.farm.app("documents"):
        plan = shelf.farm.query(f"EXPLAIN QUERY PLAN {sql('look_at_vectors')}", "", "", "", 10)
    steps = [row[3] for row in plan if " documents " not in row[3]]
    assert steps[0].startswith("SEARCH v USING COVERING INDEX vectors_of ((tenant,model,hash)>")
    assert "SEARCH chunks USING COVERING INDEX chunks_hash (hash=?)" in steps
    assert not any("TEMP B-TREE" in step for step in steps)


async def test_no_job_of_a_document_under_way_is_taken_for_lost(shelf: Shelf) -> None:
    """Accepted long ago, and still waiting its turn: it is left alone."""
    async with shelf.farm.app("documents") as app:
        await app.documents.add(b"some text", id="a")
        shelf.farm.execute("UPDATE documents SET accepted_at = accepted_at - 3600")
        (job,) = await app.jobs()
    async with shelf.running() as app:
        await completed(app, "a")
        assert (await app.wait(job.id, SOON)).state is JobState.COMPLETED
        assert len(await app.jobs(kind=PARSE)) == 1


THOUSAND = 1000
LONG_TEXT = "\n\n".join(
    f"Section {n}. " + " ".join(f"word{n}x{m} stands here" for m in range(12))
    for n in range(THOUSAND)
)
"""A chunk for each section, or more."""
NINE_TENTHS = 900


async def test_killed_at_nine_tenths_of_a_thousand_chunks_one_batch_is_embedded_again_at_most(
    shelf: Shelf, embedder: EmbedderServer
) -> None:
    shelf.farm.settings["lanes"] = {"embedder": {**LANE, "timeout_seconds": 600.0}}
    async with shelf.farm.app("documents") as app:
        await app.documents.add(LONG_TEXT.encode(), id="long")
        worker = await shelf.farm.start("documents")
        held = threading.Event()

        async def stored() -> bool:
            if len(embedder.received) > NINE_TENTHS and embedder.gate is None:
                embedder.gate = held  # what is asked from here on is not answered
            return embedder.gate is not None and await shelf.count("vectors") >= NINE_TENTHS

        await until(stored, "nine tenths of it", 4 * SOON)
        await worker.kill()
        embedder.gate = None
        held.set()
        await shelf.farm.start("documents")
        await completed(app, "long")
        made = await shelf.count("vectors")
    assert made >= THOUSAND
    assert made <= len(embedder.received) <= made + MAX_TEXTS
