"""Documents in one place, jobs in another: what two stores cannot write together is mended."""

from pathlib import Path
from typing import Any

import pytest

from penstock import Job
from penstock.documents.jobs import EMBED, PARSE
from penstock.errors import QueueUnavailable
from penstock.model.document import DocumentState
from penstock.ports.queue import JobFilter
from tests.conformance.support import BACKENDS
from tests.support.document_app import SOON, Shelf, completed, failed, found
from tests.support.embedder import EmbedderServer
from tests.support.worker_processes import Farm


@pytest.fixture(
    params=[("postgres", "sqlite"), ("redis", "sqlite"), ("redis", "postgres")], ids=" and ".join
)
def apart(request: pytest.FixtureRequest, tmp_path: Path, embedder: EmbedderServer) -> Shelf:
    """Queue and documents apart."""
    queue, store = request.param
    farm = Farm(tmp_path, url=BACKENDS[queue].url(tmp_path))
    farm.settings["store"] = BACKENDS[store].url(tmp_path)
    farm.settings["blobs"] = f"{tmp_path}/jobs.db-blobs"
    return Shelf(farm, embedder)


async def test_document_accepted_while_the_queue_is_away_is_done_when_it_is_back(
    apart: Shelf,
) -> None:
    async def away(*arguments: Any, **options: Any) -> Job:
        raise QueueUnavailable("cut off")

    async with apart.farm.app("documents") as app:
        setattr(app.documents, "_enqueue", away)  # noqa: B010
        with pytest.raises(QueueUnavailable):
            await app.documents.add(b"some text", id="a")
        assert (await app.documents.get("a")).state is DocumentState.PROCESSING
    async with apart.running() as app:
        await completed(app, "a")
        assert await found(app, "text") == ["some text"]
        await app.drain(SOON)
        assert [job.kind for job in await app.jobs()] == [EMBED, PARSE]
    assert apart.blobs() == []


async def test_document_whose_job_was_cancelled_fails_and_is_tried_again(apart: Shelf) -> None:
    async with apart.farm.app("documents") as app:
        await app.documents.add(b"some text", id="a")
        await app.queue.cancel(JobFilter(kind=PARSE))
    async with apart.running() as app:
        assert (await failed(app, "a")).message == "ingest.parse was cancelled"
        await app.documents.retry("a")
        await completed(app, "a")
        await app.drain(SOON)
    assert apart.blobs() == []
