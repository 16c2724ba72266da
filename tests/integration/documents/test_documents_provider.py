"""Documents of one's own, found like those of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.model.finding import Finding
from penstock.research.merge import merge
from penstock.research.providers import open_providers
from tests.support.document_app import SOON, Shelf, completed
from tests.support.handler_app import error_of

MILLS = "Water wheels turn millstones by way of wooden gears. " * 20
PAGE = "https://mills.example/wheels"


@pytest.fixture
async def app(shelf: Shelf) -> AsyncIterator[Penstock]:
    """An app with a document store and a job that searches it, in the provider's lane."""
    app = shelf.farm.app("documents")
    documents = open_providers({}, documents=app.documents)["documents"]

    @app.job("look", lane=documents.lane, max_retries=0)
    async def look(ctx: JobContext, query: str, limit: int, start: str | None = None) -> list[Any]:
        return [asdict(page) async for page in documents.search(ctx, query, limit, start)]

    async with app.running():
        yield app


async def look(app: Penstock, tenant: str = "default", **asked: Any) -> Job:
    payload = {"query": "water wheels", "limit": 10, **asked}
    job = await app.enqueue("look", payload, tenant=tenant)
    return await app.wait(job.id, timeout=SOON)


def findings(job: Job) -> list[Finding]:
    assert job.state is JobState.COMPLETED, job.error
    (page,) = job.result
    assert page["next"] is None
    return [Finding(**{**one, "authors": tuple(one["authors"])}) for one in page["findings"]]


async def add(app: Penstock, name: str, **options: Any) -> None:
    await app.documents.add(MILLS + name, id=name, **options)
    where = {key: options[key] for key in ("tenant", "collection") if key in options}
    await completed(app, name, **where)


async def test_each_document_is_found_once_with_its_place_and_its_best_passage(
    app: Penstock,
) -> None:
    await add(app, "a/b ü.txt", title="On Wheels", collection="mills")
    await add(app, "second", origin=PAGE)
    found = {one.extra["document"]: one for one in findings(await look(app))}
    assert set(found) == {"a/b ü.txt", "second"}
    first, second = found["a/b ü.txt"], found["second"]
    assert (first.provider, first.title) == ("documents", "On Wheels")
    assert first.url == "penstock:///collections/mills/documents/a%2Fb%20%C3%BC.txt"
    assert first.extra["collection"] == "mills"
    chunks = await app.documents.chunks("a/b ü.txt", collection="mills")
    assert first.abstract == chunks[first.extra["chunk"]].text
    assert second.url == PAGE
    assert len(chunks) > 3


async def test_no_more_than_the_limit_is_brought(app: Penstock) -> None:
    for name in ("one", "two", "three"):
        await add(app, name)
    assert len(findings(await look(app, limit=2))) == 2


async def test_only_the_documents_of_the_tenant_that_asks_are_found(app: Penstock) -> None:
    await add(app, "mine", tenant="me")
    await add(app, "yours", tenant="you")
    found = findings(await look(app, tenant="me"))
    assert [one.extra["document"] for one in found] == ["mine"]
    assert findings(await look(app)) == []


async def test_page_of_the_web_that_is_here_already_is_one_work_with_what_others_found(
    app: Penstock,
) -> None:
    await add(app, "second", origin=PAGE)
    found = findings(await look(app))
    other = Finding("searxng", "mills.example/wheels", "Wheels", f"{PAGE}/?utm_source=x")
    (work,) = merge([found, [other]])
    assert work.providers == ("documents", "searxng")
    assert work.finding.extra["document"] == "second"


async def test_place_to_go_on_from_is_refused(app: Penstock) -> None:
    assert error_of(await look(app, start="1"))[0] == "ValidationError"
