"""The embedder is replaced: the old model serves until every text has a vector of the new one."""

import json
import signal
import threading

import pytest

from penstock import Penstock
from penstock.documents import pipeline, reembed
from penstock.documents.embed_batches import MAX_TEXTS
from penstock.documents.reembed import REEMBED
from penstock.ports.queue import JobFilter
from tests.support.document_app import LANE, SOON, Shelf, completed, receipts_of
from tests.support.embedder import identity
from tests.support.waiting import until

NEW_NAME = "toy-2"
MODEL, NEW = identity(), identity(NEW_NAME)
TEXT = "\n\n".join(f"Section {n}. " + f"word{n} stands here " * 10 for n in range(100))


@pytest.fixture
async def filled(shelf: Shelf) -> Shelf:
    """Three documents of two tenants, found by the old model; then another is configured."""
    # Nothing here takes too long, and what is asked for twice is counted.
    shelf.farm.settings["lanes"] = {"embedder": {**LANE, "timeout_seconds": SOON}}
    async with shelf.running() as app:
        await app.documents.add(TEXT.encode(), id="long")
        await app.documents.add(b"some text", id="short")
        await app.documents.add(b"some text", id="theirs", tenant="other")
        await completed(app, "long")
        await completed(app, "short")
        await completed(app, "theirs", tenant="other")
        assert (await app.documents.search("text")).mode == "hybrid"
    shelf.farm.settings["config_file"] = shelf.embedder.config(shelf.farm.folder, NEW_NAME)
    return shelf


async def serves(app: Penstock, model: str) -> None:
    async def changed() -> bool:
        return (await app.documents._tools.documents.serving())[:2] == (model, None)

    await until(changed, f"{model} to serve", SOON)


def vectors(shelf: Shelf) -> dict[str, int]:
    return dict(shelf.farm.query("SELECT model, count(*) FROM vectors GROUP BY model"))


async def test_old_model_serves_until_all_is_embedded_by_the_new(filled: Shelf) -> None:
    filled.embedder.down()
    async with filled.running() as app:

        async def prepared() -> bool:
            return bool(await app.jobs(kind=REEMBED))

        await until(prepared, "the job", SOON)
        result = await app.documents.search("some text")
        assert [one.text for one in result.passages] == ["some text"]
        assert (result.mode, result.note) == (
            "text",
            f"without vectors: {MODEL} serves until all is embedded by {NEW}",
        )
        filled.embedder.up()
        await serves(app, NEW)
        result = await app.documents.search("some text")
        assert (result.mode, result.passages[0].text) == ("hybrid", "some text")
        assert result.passages[0].why.vector_rank == 1, "the very text that was asked for"
        assert (await app.documents.search("text", tenant="other")).mode == "hybrid"
        await app.documents.add(b"another text", id="late")
        await completed(app, "late")
    counts = vectors(filled)
    assert counts[NEW] == counts[MODEL] + 1


async def test_what_is_published_meanwhile_is_found_by_its_words(filled: Shelf) -> None:
    filled.embedder.delay = 0.5
    async with filled.running() as app:
        await app.documents.add(b"a novel thing", id="new")
        await completed(app, "new")
        result = await app.documents.search("novel")
        assert "a novel thing" in [one.text for one in result.passages]
        await serves(app, NEW)
        assert (await app.documents.search("novel")).mode == "hybrid"


async def test_killed_on_the_way_it_goes_on_where_it_was(filled: Shelf) -> None:
    worker = await filled.farm.start("documents", die="after first batch")
    assert await worker.exit(SOON) == -signal.SIGKILL
    async with filled.running() as app:
        await serves(app, NEW)
        receipts = await receipts_of(app, REEMBED)
    requests = [json.loads(hit.body)["model"] for hit in filled.embedder.requests]
    assert len(receipts) == requests.count(NEW_NAME)
    told = {(one.receipt.model, one.receipt.kept) for one in receipts if one.receipt}
    assert told == {(NEW_NAME, "vectors")}
    asked = [text for text, model in filled.embedder.asked if model == NEW_NAME]
    # A text that two tenants have is asked for by each; a batch that was under way, once more.
    made = vectors(filled)[NEW]
    assert made > 2 * MAX_TEXTS
    assert made <= len(asked) <= made + MAX_TEXTS


async def test_killed_at_nine_tenths_of_a_thousand_texts_one_batch_is_embedded_again_at_most(
    filled: Shelf,
) -> None:
    embedder, held = filled.embedder, threading.Event()
    old = filled.farm.settings["config_file"]
    filled.farm.settings["config_file"] = embedder.config(filled.farm.folder)
    async with filled.running() as app:
        text = "\n\n".join(f"Chapter {n}. " + f"term{n} stands here " * 10 for n in range(900))
        await app.documents.add(text.encode(), id="longer")
        await completed(app, "longer")
    filled.farm.settings["config_file"] = old
    total = vectors(filled)[MODEL]
    assert total >= 1000
    worker = await filled.farm.start("documents")

    def stored() -> bool:
        new = [model for _, model in embedder.asked if model == NEW_NAME]
        if len(new) > 0.9 * total and embedder.gate is None:
            embedder.gate = held  # what is asked from here on is not answered
        return embedder.gate is not None and vectors(filled).get(NEW, 0) >= 0.9 * total - MAX_TEXTS

    await until(stored, "nine tenths of it", 4 * SOON)
    await worker.kill()
    embedder.gate = None
    held.set()
    async with filled.running() as app:
        await serves(app, NEW)
    asked = [text for text, model in embedder.asked if model == NEW_NAME]
    made = vectors(filled)[NEW]
    # A text that two tenants have is asked for by each.
    assert total <= made <= len(asked) <= made + MAX_TEXTS


async def test_job_that_was_cancelled_is_done_by_the_next_process(filled: Shelf) -> None:
    filled.embedder.down()
    async with filled.running() as app:

        async def cancelled() -> bool:
            return bool(await app.queue.cancel(JobFilter(kind=REEMBED)))

        await until(cancelled, "the job", SOON)
    filled.embedder.up()
    async with filled.running() as app:
        await serves(app, NEW)


async def test_going_back_costs_no_request(filled: Shelf) -> None:
    async with filled.running() as app:
        await serves(app, NEW)
    asked = len(filled.embedder.requests)
    filled.farm.settings["config_file"] = filled.embedder.config(filled.farm.folder)
    async with filled.running() as app:
        await serves(app, MODEL)
        assert len(filled.embedder.requests) == asked
        assert (await app.documents.search("text")).mode == "hybrid"


async def test_of_two_processes_that_differ_the_last_one_started_has_its_way(
    filled: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Either process may claim a job that only the other can do, any number of times.
    monkeypatch.setattr(reembed, "LATER_SECONDS", 0.05)
    monkeypatch.setattr(pipeline, "OTHER_SECONDS", 0.05)
    filled.farm.settings["lease_seconds"] = SOON
    old = filled.embedder.config(filled.farm.folder)
    async with filled.running(config_file=old) as before:
        await before.documents.add(b"an early text", id="early")
        await completed(before, "early")
        async with filled.running() as after:
            await serves(after, NEW)
            assert (await before.documents.search("some text")).mode == "text"
            await before.documents.add(b"a later text", id="later")
            await completed(after, "later")
            await serves(before, NEW)
    assert vectors(filled)[NEW] == vectors(filled)[MODEL] + 1


async def test_same_model_of_another_length_is_another_model(either: Shelf) -> None:
    """Its vectors are never compared with those of the length before."""
    async with either.running() as app:
        await app.documents.add(b"some text", id="a")
        await completed(app, "a")
    either.embedder.dimensions = 6
    either.farm.settings["config_file"] = either.embedder.config(either.farm.folder)
    either.embedder.down()
    async with either.running() as app:
        result = await app.documents.search("some text")
        assert (result.mode, len(result.passages)) == ("text", 1)
        either.embedder.up()
        await serves(app, identity(dimensions=6))
        await app.documents.add(b"another text", id="b")
        await completed(app, "b")
        result = await app.documents.search("some text")
        assert (result.mode, len(result.passages)) == ("hybrid", 2)
        assert result.passages[0].why.vector_rank == 1
    rows = await either.rows("SELECT name, dimensions FROM penstock.models ORDER BY dimensions")
    assert rows == [(identity(dimensions=6), 6), (identity(), 8)]


async def test_vectors_of_the_model_before_are_deleted_by_upkeep(filled: Shelf) -> None:
    async with filled.running(unused_vectors_seconds=0.0) as app:
        await serves(app, NEW)
        app.documents._purge._next_at = 0.0
        await until(lambda: set(vectors(filled)) == {NEW}, "the old vectors to be gone", SOON)
