"""Files in a bucket, jobs in Kafka: objects that messages name, and uploads that a server passes
on."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.blobs.address import bucket_address
from penstock.adapters.blobs.bucket import BucketBlobs
from penstock.adapters.blobs.services import BlobService
from penstock.cli.serve import pass_on_uploads
from penstock.documents import reconcile
from penstock.documents.jobs import FETCH, PARSE
from penstock.errors import ConfigError
from penstock.intake import dead_letters
from penstock.intake.produce import UploadProducer
from penstock.model.document import DocumentState
from penstock.model.ids import new_id
from penstock.model.intake import KafkaConfig
from tests.support.app_api import Site
from tests.support.buckets import KEYS, Bucket, GcsBucket, s3_bucket, s3_url
from tests.support.document_app import Shelf, completed, failed, found
from tests.support.gcs_server import GcsServer
from tests.support.kafka import Cluster, drained

MILL = b"# The mill\n\nThe miller opens the sluice at dawn."


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, GcsBucket]]:
    """A bucket of somebody else, and its address."""
    with GcsServer() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield "gs://uploads", GcsBucket(server, "uploads")


def document(url: str, **more: Any) -> dict[str, Any]:
    return {"kind": "document", "url": url, **more}


async def take_in(shelf: Shelf, config: KafkaConfig) -> Any:
    return (await drained(shelf.farm.app("documents"), config)).tally.as_dict()


@pytest.mark.parametrize("service", ["gcs", "s3"])
async def test_an_object_that_a_message_names_is_found_and_left_as_it_is(
    cluster: Cluster,
    shelf: Shelf,
    service: str,
    uploads: tuple[str, GcsBucket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if service == "gcs":
        bucket, place = uploads
        await names_an_object(cluster, shelf, bucket, f"{bucket}/lectures", place)
        return
    for variable, value in KEYS.items():
        monkeypatch.setenv(variable, value)
    name = f"test-{new_id()}"
    with s3_bucket(name) as there:
        allowed = f"s3://{name}/lectures/?endpoint={s3_url()}"
        await names_an_object(cluster, shelf, f"s3://{name}", allowed, there)


async def names_an_object(
    cluster: Cluster, shelf: Shelf, bucket: str, allowed: str, place: GcsBucket | Bucket
) -> None:
    place.put("lectures/1/mill & sluice.md", MILL)
    topic, url = cluster.topic(), f"{bucket}/lectures/1/mill & sluice.md"
    cluster.send(topic, [document(url, id="mill", metadata={"subject": "mills"})])
    stored = await take_in(shelf, cluster.config(topic, buckets=(allowed,)))
    assert stored == {"stored": 1, "duplicates": 0, "dead_letters": 0}
    async with shelf.running() as app:
        mill = await completed(app, "mill")
        assert (mill.source, mill.size) == (url, len(MILL))
        assert "opens the sluice at dawn" in (await found(app, "miller"))[0]
        (job,) = await app.jobs(kind=FETCH)
        assert job.lane == f"bucket:{bucket.partition('://')[2]}"
        await app.drain(60)
    assert (shelf.blobs(), place.names()) == ([], ["lectures/1/mill & sluice.md"])


OUTSIDE = (
    "gs://uploads/private/mill.md",
    "gs://uploads/lectures-private/mill.md",
    "gs://uploads/lectures/../private/mill.md",
    "gs://uploads/lectures/./mill.md",
    "gs://uploads/lectures//mill.md",
    "gs://uploads/lectures/",
    "gs://uploads/lectures",
    "gs://others/lectures/mill.md",
    "gs://uploads",
    "gs://",
    "s3://uploads/lectures/mill.md",
    "gs://uploads/lectures/mill.md\u0007",
)


async def test_an_object_elsewhere_is_a_dead_letter(
    cluster: Cluster, shelf: Shelf, uploads: tuple[str, GcsBucket]
) -> None:
    topic = cluster.topic()
    cluster.send(topic, [document(url) for url in OUTSIDE])
    config = cluster.config(topic, buckets=(f"{uploads[0]}/lectures",))
    assert (await take_in(shelf, config))["dead_letters"] == len(OUTSIDE)
    for url, dead in zip(OUTSIDE, cluster.dead_letters(topic), strict=True):
        assert dead.reason == "refused"
        said = (dead.headers["penstock-detail"] or b"").decode()
        assert "intake.kafka.buckets" in said or "names no object" in said, url


async def test_no_object_is_read_unless_a_bucket_is_named(cluster: Cluster, shelf: Shelf) -> None:
    topic = cluster.topic()
    cluster.send(topic, [document("gs://uploads/lectures/mill.md")])
    assert (await take_in(shelf, cluster.config(topic)))["dead_letters"] == 1
    (dead,) = cluster.dead_letters(topic)
    assert b"only http and https addresses are fetched" in (dead.headers["penstock-detail"] or b"")
    with pytest.raises(ConfigError, match=r"intake.kafka.buckets: no blob store for az://"):
        await take_in(shelf, cluster.config(topic, buckets=("az://container",)))


async def test_an_object_that_is_missing_fails_its_document_alone(
    cluster: Cluster, shelf: Shelf, uploads: tuple[str, GcsBucket]
) -> None:
    bucket, place = uploads
    place.put("mill.md", MILL)
    topic = cluster.topic()
    messages = [document(f"{bucket}/gone.md", id="gone"), document(f"{bucket}/mill.md", id="mill")]
    cluster.send(topic, messages)
    stored = await take_in(shelf, cluster.config(topic, buckets=(bucket,)))
    assert stored["stored"] == 2
    async with shelf.running() as app:
        gone = await failed(app, "gone")
        assert gone.error is not None
        assert gone.error["message"] == "uploads: there is no such object"
        await completed(app, "mill")


class Closed:
    """A bucket that gives nothing to us."""

    def __init__(self, error: OSError) -> None:
        self.loop = asyncio.get_running_loop()
        self._error = error

    async def _info(self, path: str) -> None:
        raise self._error


@pytest.mark.parametrize("error", [PermissionError("Forbidden"), OSError("Forbidden: b/uploads")])
async def test_an_object_that_is_not_for_us_is_told_from_an_outage(
    monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    async def opened(self: BucketBlobs) -> BlobService:
        return BlobService(Closed(error), (OSError,), "mtime")

    monkeypatch.setattr(BucketBlobs, "_open", opened)
    with pytest.raises(PermissionError):
        async for _ in BucketBlobs(bucket_address("gs://uploads")).content("mill.md"):
            pass


def config_with(folder: Path, base: str, **kafka: Any) -> str:
    """The config file of a shelf, with a section for Kafka."""
    path = folder / "produce.yaml"
    lines = [Path(base).read_text(), f"intake: {json.dumps({'kafka': kafka})}"]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("files", ["in a folder", "in a bucket"])
async def test_an_upload_is_passed_on_and_begun_once_by_who_reads(
    cluster: Cluster,
    shelf: Shelf,
    uploads: tuple[str, GcsBucket],
    monkeypatch: pytest.MonkeyPatch,
    files: str,
) -> None:
    topic, settings = cluster.topic(), shelf.farm.settings
    bucket, place = uploads
    if files == "in a bucket":
        settings["blobs"] = f"{bucket}/originals"
    file = config_with(
        shelf.farm.folder, settings["config_file"], bootstrap=cluster.bootstrap, produce=topic
    )
    app = shelf.farm.app("documents", config_file=file)
    app.use("answers", "keys")
    pass_on_uploads(app)
    monkeypatch.setattr(reconcile, "GRACE_SECONDS", -60.0)
    async with app:
        async with await Site(app).client("acme") as client:
            sent = {"file": ("mill.md", MILL)}
            made = await client.post("/v1/documents", files=sent, data={"collection": "water"})
            assert made.status_code == 202
            (accepted,) = made.json()["documents"]
            again = await client.get("/v1/documents/mill.md?collection=water")
            assert again.json()["state"] == "processing", "it can be asked about at once"
        for chore in app.documents.chores({PARSE}):
            await chore()
        assert await app.jobs() == [], "its job is for who reads the topic"
    assert (len(place.names()), len(shelf.blobs())) == ((1, 0) if settings.get("blobs") else (0, 1))
    tally = await take_in(shelf, cluster.config(topic))
    assert tally == {"stored": 1, "duplicates": 0, "dead_letters": 0}
    await take_in(shelf, cluster.config(topic, group=f"{topic}-again"))
    async with shelf.running() as app:
        mill = await completed(app, "mill.md", collection="water", tenant="acme")
        assert mill.generation == accepted["generation"]
        assert len(await app.jobs(kind=PARSE)) == 1
        await app.drain(60)
    assert (place.names(), shelf.blobs()) == ([], []), "once it is found, the file is not needed"


async def test_a_message_of_an_upload_that_was_replaced_begins_nothing(
    cluster: Cluster, shelf: Shelf
) -> None:
    topic = cluster.topic()
    app = shelf.farm.app("documents")
    async with app:
        first = await app.documents.add(b"one", id="a")
        await app.documents.add(b"two", id="a")
        jobs = len(await app.jobs())
    late = {"kind": "ingest", "id": "a", "collection": "default", "tenant": "default"}
    never = {**late, "id": "never there", "generation": 1}
    cluster.send(topic, [{**late, "generation": first.generation}, never])
    assert (await take_in(shelf, cluster.config(topic)))["stored"] == 2
    async with app:
        assert len(await app.jobs()) == jobs


async def test_while_kafka_is_away_uploads_go_straight_to_the_queue(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dead_letters, "PUBLISH_SECONDS", 0.3)
    config = KafkaConfig(bootstrap="127.0.0.1:1", produce="uploads")
    app = shelf.farm.app("documents")
    app.documents.hand_over(UploadProducer(config))
    async with app:
        for name in ("a", "b"):
            await app.documents.add(b"text", id=name)
            assert (await app.documents.get(name)).state is DocumentState.PROCESSING
        assert len(await app.jobs(kind=PARSE)) == 2
    told = [one for one in caplog.messages if "uploads go straight to the queue" in one]
    assert len(told) == 1, "it is not asked again for a while"
