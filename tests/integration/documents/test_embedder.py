"""The embedder fails in every way: nothing wrong is stored, nothing is lost, nobody else waits.

Times of its lane are a tenth of the defaults.
"""

import asyncio
import json
import threading
import time

import pytest

from penstock import JobState, Penstock
from penstock.documents import embed_batches as company
from penstock.documents.embed_batches import MAX_TEXTS
from penstock.documents.jobs import EMBED
from tests.support.document_app import LANE, SOON, Shelf, completed, failed, found
from tests.support.waiting import until

WRONG = {
    "count": "0 embeddings for 1 texts",
    "dimension": "7 dimensions where 8 are configured",
    "nan": "not finite",
    "empty": "not a list of embeddings",
}
AWAY = ("429", "500", "reset", "hang")
MANY = 100


async def add_many(app: Penstock, count: int = MANY) -> list[str]:
    names = [f"d{n}" for n in range(count)]
    for name in names:
        await app.documents.add(f"The text of {name}.".encode(), id=name)
    return names


async def spent(app: Penstock) -> list[int]:
    """Attempts that jobs in the embedder's lane have spent."""
    jobs = await app.jobs(kind=EMBED, limit=1000)
    return [job.attempts for job in jobs if job.state is JobState.QUEUED]


@pytest.mark.parametrize("fault", WRONG)
async def test_wrong_answer_fails_the_document_and_nothing_of_it_is_stored(
    either: Shelf, fault: str
) -> None:
    either.embedder.fault = fault
    async with either.running() as app:
        await app.documents.add(b"some text", id="a")
        document = await failed(app, "a")
        assert document.error is not None
        assert (document.error["type"], document.searchable) == ("EmbedderError", False)
        assert WRONG[fault] in document.message
        assert await either.count("vectors") == 0
        either.embedder.fault = None
        await app.documents.retry("a")
        await completed(app, "a")
        assert await either.count("vectors") == 1


@pytest.mark.parametrize("fault", AWAY)
async def test_document_waits_out_an_embedder_that_is_away(shelf: Shelf, fault: str) -> None:
    shelf.embedder.fault = fault
    if fault == "hang":
        shelf.farm.settings["lanes"] = {"embedder": {**LANE, "timeout_seconds": 1.0}}
    async with shelf.running() as app:
        await add_many(app, 2)
        await until(lambda: len(shelf.embedder.requests) >= 2, "two tries")
        assert await shelf.count("vectors") == 0
        shelf.embedder.fault = None
        await completed(app, "d0")
        await completed(app, "d1")


async def test_embedder_down_costs_others_nothing_and_documents_no_attempt(shelf: Shelf) -> None:
    shelf.farm.settings["lanes"] = {"embedder": {**LANE, "timeout_seconds": SOON}}
    # The first to fail has its attempt back only if it has not been run again by then.
    async with shelf.running(retry_base_seconds=60.0) as app:

        async def others() -> float:
            start = time.monotonic()
            for job in await app.enqueue_many("noop", [None] * 300):
                await app.wait(job.id, SOON)
            return time.monotonic() - start

        alone = await others()
        shelf.embedder.down()
        names = await add_many(app)

        async def parsed() -> bool:
            jobs = await app.jobs(kind=EMBED, states=["queued"], limit=1000)
            return len(jobs) == MANY

        await until(parsed, "all to wait for the embedder", SOON)

        async def none_spent() -> bool:
            return set(await spent(app)) == {0}

        # The first to fail has its attempt back when the second has failed, too.
        await until(none_spent, "all attempts to be given back", SOON)

        async def as_quick() -> bool:
            return await others() < 5 * alone + 0.5

        await until(as_quick, "the others to be as quick as ever", SOON)
        assert {one.state for one in await app.documents.documents(limit=1000)} == {"processing"}
        shelf.embedder.up()
        for name in names:
            await completed(app, name)
        assert await shelf.count("vectors") == MANY
        assert await app.dead_letters() == []


async def test_old_version_is_found_while_the_embedder_is_away_for_the_new_one(
    either: Shelf,
) -> None:
    async with either.running() as app:
        await app.documents.add(b"the first version", id="a")
        await completed(app, "a")
        either.embedder.down()
        await app.documents.add(b"the second version", id="a")

        async def staged() -> bool:
            return (await app.documents.get("a")).phase == "embed"

        await until(staged, "the second version to be staged", SOON)
        result = await app.documents.search("version")
        assert [one.text for one in result.passages] == ["the first version"]
        assert result.mode == "text"
        assert result.note
        either.embedder.up()
        await completed(app, "a")
        assert await found(app, "version") == ["the second version"]


async def test_small_documents_share_requests(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that a machine that stands still for a moment parts nobody from their company.
    monkeypatch.setattr(company, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(company, "PATIENCE_SECONDS", SOON)
    monkeypatch.setattr(company, "LONELY_SECONDS", SOON)
    shelf.farm.settings["lanes"] = {"embedder": {**LANE, "timeout_seconds": SOON}}
    shelf.embedder.delay = 0.05
    async with shelf.running() as app:
        await app.control_lane("embedder", "pause")  # so that there are many at once
        names = await add_many(app)

        async def parsed() -> bool:
            return len(await app.jobs(kind=EMBED, limit=1000)) == MANY

        await until(parsed, "all to wait for the embedder", SOON)
        await app.control_lane("embedder", "resume")
        for name in names:
            await completed(app, name)
    sizes = [len(json.loads(hit.body)["input"]) for hit in shelf.embedder.requests]
    assert sum(sizes) == MANY, "each text once"
    assert max(sizes) <= MAX_TEXTS
    assert len(sizes) < MANY * 0.75, "requests"


async def test_one_poisonous_document_does_not_hurt_those_it_shares_a_request_with(
    shelf: Shelf,
) -> None:
    shelf.embedder.fault, shelf.embedder.poison = "dimension", "poison"
    async with shelf.running() as app:
        names = await add_many(app, 12)
        await app.documents.add(b"this is poison", id="bad")
        await failed(app, "bad")
        for name in names:
            await completed(app, name)
        (dead,) = await until(app.dead_letters, "the dead letter")
        assert dead.payload["document"] == "bad"


async def test_cancelling_the_job_that_makes_a_request_does_not_hurt_the_others(
    shelf: Shelf,
) -> None:
    gate = shelf.embedder.gate = threading.Event()
    shelf.farm.settings["lanes"] = {"embedder": {**LANE, "timeout_seconds": SOON}}
    async with shelf.running() as app:
        await add_many(app, 4)

        async def all_ask() -> bool:
            jobs = await app.jobs(kind=EMBED, states=["running"])
            return len(jobs) == 4 and len(shelf.embedder.requests) >= 1

        await until(all_ask, "the jobs to ask together", SOON)
        # Whoever makes the request, it is one of these.
        asking = {job.payload["document"]: job.id for job in await app.jobs(kind=EMBED)}
        for name in ("d0", "d1", "d2"):
            await app.cancel(asking[name])
        gate.set()
        await completed(app, "d3")
        for name in ("d0", "d1", "d2"):
            assert (await failed(app, name)).message == f"{EMBED} was cancelled"


async def test_long_document_takes_several_runs_and_no_attempt(shelf: Shelf) -> None:
    """What was embedded in one run is not asked for again by the next."""
    # Half of its time is left when the last batch of a run begins.
    shelf.embedder.delay = 1.6
    shelf.farm.settings["lanes"] = {"embedder": {**LANE, "timeout_seconds": 12.0}}
    text = "\n\n".join(f"Paragraph {n} " + f"holds word{n} " * 16 for n in range(230))
    async with shelf.running(max_retries=0) as app:
        await app.documents.add(text.encode(), id="a")
        await completed(app, "a")
        (job,) = await app.jobs(kind=EMBED)
        assert job.releases >= 1
    received = shelf.embedder.received
    assert len(received) == len(set(received)) > 4 * MAX_TEXTS


async def test_waiters_hear_of_the_end_without_asking_again_and_again(shelf: Shelf) -> None:
    async with shelf.running() as app:
        gets = 0
        get = app.documents._tools.documents.get

        async def counting(ref: object) -> object:
            nonlocal gets
            gets += 1
            return await get(ref)  # type: ignore[arg-type]

        setattr(app.documents._tools.documents, "get", counting)  # noqa: B010
        shelf.embedder.delay = 1.0
        await app.documents.add(b"some text", id="a")
        start = time.monotonic()
        waiters = [asyncio.create_task(completed(app, "a")) for _ in range(3)]
        await asyncio.gather(*waiters)
        seconds = time.monotonic() - start
        assert gets <= 3 * (12 + seconds), "at each change and once a second"
