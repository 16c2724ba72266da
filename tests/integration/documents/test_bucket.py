"""Documents whose originals are in a bucket, from the upload to the search."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from penstock import Penstock
from penstock.documents.jobs import EMBED, PARSE
from penstock.errors import BlobMissing, DocumentNotFound, StoreUnavailable
from penstock.model.document import DocumentState, Upload
from penstock.model.ids import new_id
from penstock.ports.lanes import LaneInfo
from tests.support import documents
from tests.support.buckets import KEYS, Bucket, s3_bucket, s3_url
from tests.support.document_app import LANE, SOON, Shelf, completed, failed, found
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import until

BREAKER = {"breaker_first_seconds": 0.1, "breaker_cap_seconds": 1.0, "probe_seconds": 0.3}
TRIES = 5
LATER = 60.0
"""Seconds until an outage has been seen, five times what it takes on an idle machine."""


@pytest.fixture
def bucket(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for variable, value in KEYS.items():
        monkeypatch.setenv(variable, value)
    name = f"test-{new_id()}"
    with s3_bucket(name) as bucket:
        shelf.farm.settings["blobs"] = f"s3://{name}/originals?endpoint={s3_url()}"
        shelf.farm.settings["lanes"] = {
            # Longer than a bucket may take to answer, as it is by default.
            "embedder": {**LANE, "timeout_seconds": LATER},
            "blobs": BREAKER,
        }
        # The first to fail is not run again before there is a second witness.
        shelf.farm.settings["retry_base_seconds"] = 5.0
        yield bucket


@pytest.fixture
def proxy(shelf: Shelf, bucket: Bucket) -> Iterator[Proxy]:
    """Between Penstock and the bucket."""
    with Proxy(s3_url()) as proxy:
        shelf.farm.settings["blobs"] = shelf.farm.settings["blobs"].replace(s3_url(), proxy.url)
        yield proxy


async def blobs_lane(app: Penstock) -> LaneInfo | None:
    return next((lane for lane in await app.lane_infos() if lane.name == "blobs"), None)


async def test_documents_of_every_format_are_found_and_their_originals_deleted(
    shelf: Shelf, bucket: Bucket
) -> None:
    async with shelf.running() as app:
        for name, make in documents.MAKERS.items():
            await app.documents.add(make(), id=name)
        for name in documents.MAKERS:
            await completed(app, name)
        await app.drain(SOON)
        assert bucket.names() == []
    assert shelf.blobs() == []


async def test_originals_are_kept_in_the_bucket_if_asked_and_go_with_their_document(
    shelf: Shelf, bucket: Bucket
) -> None:
    async with shelf.running(keep_originals=True) as app:
        await app.documents.add(b"the first version", id="a")
        await completed(app, "a")
        await app.documents.add(b"the second version", id="a")
        await completed(app, "a")
        await app.drain(SOON)
        (name,) = bucket.names()
        assert name.startswith("originals/")
        await app.documents.delete("a")
        assert bucket.names() == []


async def test_upload_while_the_bucket_is_away_says_so_and_leaves_no_document(
    shelf: Shelf, bucket: Bucket, proxy: Proxy
) -> None:
    async with shelf.running() as app:
        proxy.leave()
        with pytest.raises(StoreUnavailable, match="cannot use the blobs in s3://"):
            await app.documents.add(b"some text", id="a")
        with pytest.raises(DocumentNotFound):
            await app.documents.get("a")
        proxy.come_back()
        await app.documents.add(b"some text", id="a")
        await completed(app, "a")


async def test_upload_is_accepted_although_the_version_before_cannot_be_deleted_now(
    shelf: Shelf, bucket: Bucket, proxy: Proxy
) -> None:
    async with shelf.farm.app("documents") as app:
        documents = app.documents._tools.documents
        accept = documents.accept

        async def last_thing(upload: Upload) -> Any:
            accepted = await accept(upload)
            proxy.leave()
            return accepted

        first = await app.documents.add(b"the first version", id="a")
        setattr(documents, "accept", last_thing)  # noqa: B010
        second = await app.documents.add(b"the second version", id="a")
        assert second.generation > first.generation
        setattr(documents, "accept", accept)  # noqa: B010
    proxy.come_back()
    assert len(bucket.names()) == 2
    async with shelf.running() as app:
        await completed(app, "a")
        await app.documents._tools.blobs.sweep(-60.0, _none)
    assert bucket.names() == []


async def _none(keys: Sequence[str]) -> set[str]:
    return set()


async def test_documents_wait_out_a_bucket_that_is_away_and_spend_no_attempt(
    shelf: Shelf, bucket: Bucket, proxy: Proxy
) -> None:
    names = ("a", "b", "c")
    async with shelf.farm.app("documents") as app:
        for name in names:
            await app.documents.add(f"the text of {name}".encode(), id=name)
    proxy.leave()
    async with shelf.running() as app:
        tries = set()

        async def outage() -> bool:
            lane = await blobs_lane(app)
            if lane is not None and lane.breaker == "open":
                tries.add(lane.retry_at)
            return len(tries) > TRIES

        await until(outage, "more tries than a job has attempts", LATER)
        # One may have been spent before there was a second witness.
        assert max(job.attempts for job in await app.jobs(kind=PARSE)) <= 2
        states = {name: (await app.documents.get(name)).state for name in names}
        assert set(states.values()) == {DocumentState.PROCESSING}
        proxy.come_back()
        for name in names:
            await completed(app, name)
        assert len(await found(app, "the text of a")) == 3
        await app.drain(SOON)
    assert bucket.names() == []


async def test_document_is_found_although_its_original_cannot_be_deleted_yet(
    shelf: Shelf, bucket: Bucket, proxy: Proxy
) -> None:
    """The embedder is fine: its lane is not blamed for the bucket."""
    gate = shelf.embedder.gate = threading.Event()
    async with shelf.running() as app:
        await app.documents.add(b"some text", id="a")
        await until(lambda: shelf.embedder.requests, "the text to be embedded", LATER)
        proxy.leave()
        gate.set()
        await completed(app, "a")

        async def outage() -> bool:
            lane = await blobs_lane(app)
            return lane is not None and lane.breaker == "open"

        await until(outage, "the bucket's breaker to open", LATER)
        embedder = next(lane for lane in await app.lane_infos() if lane.name == "embedder")
        assert embedder.breaker == "closed"
        assert await found(app, "some text") == ["some text"]
        assert bucket.names() != []
        proxy.come_back()
        await app.drain(LATER)
        assert bucket.names() == []
        assert max(job.attempts for job in await app.jobs(kind=EMBED)) <= 2


async def test_failed_document_is_tried_again_from_its_original_in_the_bucket(
    shelf: Shelf, bucket: Bucket
) -> None:
    async with shelf.running() as app:
        await app.documents.add(b"PK\x03\x04 no archive", id="a")
        await failed(app, "a")
        await app.documents.retry("a")
        await failed(app, "a")
        (name,) = bucket.names()
        bucket.delete(name)
        with pytest.raises(BlobMissing, match="upload the document again"):
            await app.documents.retry("a")


async def test_worker_process_of_its_own_reads_from_the_bucket(
    shelf: Shelf, bucket: Bucket
) -> None:
    async with shelf.farm.app("documents") as app:
        await app.documents.add(b"uploaded here, parsed there", id="a")
        await shelf.farm.start("documents")
        await completed(app, "a")
        await until(lambda: not bucket.names(), "the original to be deleted")
