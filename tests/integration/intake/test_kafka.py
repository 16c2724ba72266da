"""Messages of Kafka become what they ask for: each once, in order, or a dead letter."""

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from penstock import JobContext, Penstock
from penstock.errors import ConfigError, DocumentNotFound, IntakeError, StoreUnavailable
from penstock.intake.idempotency import ROUTE
from penstock.intake.partition import FULL
from penstock.intake.run import KafkaIntake, redrive_all
from penstock.model.document import DocumentState
from penstock.model.intake import KafkaConfig
from penstock.ports.queue import JobFilter
from tests.support.kafka import PATIENCE, Cluster, Value, drained, raw, reading
from tests.support.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def new_app(url: str, **settings: Any) -> Penstock:
    return Penstock(url, durable=False, **settings)


def jobs(count: int) -> list[Value]:
    return [{"kind": "job", "job": "noop", "payload": {"number": n}} for n in range(count)]


def document(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "document", "id": name, "text": text, **more}


async def test_messages_become_what_they_ask_for(cluster: Cluster, url: str) -> None:
    topic = cluster.topic()
    cluster.send(
        topic,
        [
            document("mill", "The mill stands by the river.", metadata={"year": 1890}),
            document("gone", "Not for long."),
            {"kind": "delete", "id": "gone"},
            {"kind": "delete", "id": "never there"},
            {"kind": "document", "url": "https://example.org/mill.html", "collection": "web"},
            {"kind": "search", "question": "Who built mills?", "queries": ["mills", "weirs"]},
            {"kind": "job", "job": "noop", "payload": {"number": 7}, "priority": "high"},
        ],
    )
    app = new_app(url)
    intake = await drained(app, cluster.config(topic))
    assert intake.tally.as_dict() == {"stored": 7, "duplicates": 0, "dead_letters": 0}
    assert cluster.committed(topic) == [7]
    async with app:
        mill = await app.documents.get("mill")
        assert (mill.state, mill.metadata) == (DocumentState.PROCESSING, {"year": 1890})
        with pytest.raises(DocumentNotFound):
            await app.documents.get("gone")
        assert await app.documents.documents(collection="web")
        (task,) = await app.research.tasks()
        assert (task.question, task.progress) == ("Who built mills?", "0/2")
        (job,) = await app.jobs(kind="noop")
        assert (job.payload, job.priority.name) == ({"number": 7}, "HIGH")


async def test_messages_of_a_partition_are_stored_in_order(cluster: Cluster, url: str) -> None:
    topic = cluster.topic(3)
    cluster.send(topic, jobs(60), partitions=3)
    app = new_app(url)
    await drained(app, cluster.config(topic))
    async with app:
        found = [job.payload["number"] for job in await app.jobs(kind="noop")][::-1]
    for partition in range(3):
        of_one = [number for number in found if number % 3 == partition]
        assert of_one == sorted(of_one)
    assert sorted(found) == list(range(60))


async def test_message_that_is_read_again_changes_nothing(cluster: Cluster, url: str) -> None:
    """Not even when what it made has been replaced since."""
    topic = cluster.topic()
    search = {"kind": "search", "question": "Who built mills?"}
    cluster.send(topic, [document("a", "first"), document("a", "second"), search, *jobs(3)])
    app = new_app(url)
    await drained(app, cluster.config(topic))
    async with app:
        before = await app.documents.get("a"), await app.research.tasks(), await app.jobs()
    again = await drained(app := new_app(url), cluster.config(topic, group=f"{topic}-again"))
    assert again.tally.as_dict() == {"stored": 0, "duplicates": 6, "dead_letters": 0}
    async with app:
        after = await app.documents.get("a"), await app.research.tasks(), await app.jobs()
    assert after == before


async def test_messages_with_the_same_id_are_one(cluster: Cluster, url: str) -> None:
    topic = cluster.topic(2)
    for headers in ([("message-id", "one")], [("message-id", "two")]):
        cluster.send(topic, [document("a", "text")] * 2, partitions=2, headers=headers)
        cluster.send(topic, jobs(1) * 2, partitions=2, headers=headers)
    app = new_app(url)
    intake = await drained(app, cluster.config(topic))
    assert intake.tally.as_dict() == {"stored": 4, "duplicates": 4, "dead_letters": 0}
    async with app:
        assert len(await app.jobs(kind="noop")) == 2


async def test_id_that_is_used_with_another_content_is_a_dead_letter(
    cluster: Cluster, url: str
) -> None:
    topic, headers = cluster.topic(), [("message-id", "one")]
    cluster.send(topic, [document("a", "first"), document("a", "second")], headers=headers)
    cluster.send(topic, jobs(2), headers=[("message-id", "two")])
    intake = await drained(new_app(url), cluster.config(topic))
    assert intake.tally.as_dict() == {"stored": 2, "duplicates": 0, "dead_letters": 2}
    assert [one.reason for one in cluster.dead_letters(topic)] == ["key-reused"] * 2


DEEP = b'{"kind": "job", "job": "noop", "payload": {"a": ' + b"[" * 200 + b"]" * 200 + b"}}"
POISON: list[tuple[Value, str]] = [
    (None, "empty"),
    (b"", "not-json"),
    (b"\x1f\x8b\x08\x00 compressed", "not-json"),
    ("Möwe".encode("latin-1"), "not-json"),
    (b'{"kind": "job"', "not-json"),
    (b"[" * 100_000, "not-json"),
    (DEEP, "not-json"),
    (b'{"kind": "document", "text": "\\ud800"}', "not-json"),
    (b"[]", "invalid"),
    ({"kind": "nothing"}, "invalid"),
    ({"kind": ["document"]}, "invalid"),
    ({"kind": "document"}, "invalid"),
    ({"kind": "document", "text": "a", "url": "https://example.org"}, "invalid"),
    ({"kind": "document", "text": 7}, "invalid"),
    ({"kind": "document", "text": "a", "colour": "red"}, "invalid"),
    (document("a" * 241, "text"), "invalid"),
    (document("a\x00b", "text"), "refused"),
    (document("a", "text", collection=""), "invalid"),
    ({"kind": "document", "url": "http://127.0.0.1:1/a"}, "refused"),
    ({"kind": "document", "text": "x" * 300_000}, "too-large"),
    ({"kind": "search", "question": ""}, "invalid"),
    ({"kind": "search", "question": "q", "providers": ["nobody"]}, "refused"),
    ({"kind": "job", "job": "ingest.parse", "payload": {}}, "refused"),
    ({"kind": "job", "job": "no good", "payload": {}}, "invalid"),
]


async def test_what_cannot_be_carried_out_is_a_dead_letter_and_the_rest_goes_on(
    cluster: Cluster, url: str
) -> None:
    topic = cluster.topic()
    for value, _ in POISON:
        cluster.send(topic, [value, *jobs(1)], key=b"who sent it", headers=[("trace", "1")])
    app = new_app(url)
    intake = await drained(app, cluster.config(topic, message_bytes=250_000))
    count = len(POISON)
    assert intake.tally.as_dict() == {"stored": count, "duplicates": 0, "dead_letters": count}
    assert cluster.committed(topic) == [2 * count]
    dead = cluster.dead_letters(topic)
    assert [one.reason for one in dead] == [reason for _, reason in POISON]
    for number, (one, (value, _)) in enumerate(zip(dead, POISON, strict=True)):
        assert one.value == raw(value)
        assert one.key == one.headers["penstock-key"] == b"who sent it"
        assert one.headers["penstock-topic"] == topic.encode()
        assert one.headers["penstock-partition"] == b"0"
        assert one.headers["penstock-offset"] == str(2 * number).encode()
        assert int(one.headers["penstock-timestamp"] or 0) > 1e12
        assert one.headers["trace"] == b"1"
        assert one.headers["penstock-detail"]
    async with app:
        assert len(await app.jobs(kind="noop")) == count


async def test_header_that_cannot_be_read_is_a_dead_letter(cluster: Cluster, url: str) -> None:
    topic = cluster.topic()
    cluster.send(topic, jobs(50))
    cluster.mock.send_with_header(topic, b'{"kind": "job", "job": "noop"}', b"bad\xff")
    cluster.send(topic, jobs(1))
    intake = await drained(new_app(url), cluster.config(topic))
    assert intake.tally.as_dict() == {"stored": 51, "duplicates": 0, "dead_letters": 1}
    assert [one.reason for one in cluster.dead_letters(topic)] == ["header"]


@pytest.mark.parametrize("accepted", [False, True], ids=["before it", "after it"])
async def test_message_whose_reader_died_half_way_is_carried_out_by_the_next(
    cluster: Cluster, url: str, accepted: bool
) -> None:
    """Once the dead one's lease is over."""
    topic, said = cluster.topic(), document("a", "text")
    cluster.send(topic, [said], headers=[("message-id", "one")])
    app = new_app(url)
    intake = KafkaIntake(app, cluster.config(topic))
    print_of = hashlib.sha256(raw(said) or b"").hexdigest()
    async with app, asyncio.timeout(PATIENCE):
        begun = time.monotonic()
        dead = ("default", ROUTE, "id:one", print_of, "dead", "made")
        await app.keys.store.begin(*dead, lease_seconds=1.0)
        if accepted:
            await app.documents.add("text", id="a")
        await intake.run(asyncio.Event(), drain=True)
        assert time.monotonic() - begun >= 1.0
        assert intake.tally.stored == 1
        assert len(await app.queue.find(JobFilter(kind="ingest.parse"), 10)) == 1


async def test_request_or_answer_of_the_store_that_is_lost_repeats_nothing(
    cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.topic()
    cluster.send(topic, [document("a", "first"), document("a", "second")])
    app = new_app(url).use("keys")
    finish = app.keys.store.finish
    lost = iter(["request", "answer", "request", "request", None])

    async def losing(*arguments: Any) -> bool:
        what = next(lost)
        if what == "request":  # begun by the same reader, who goes on without waiting for its lease
            raise StoreUnavailable("the request was lost")
        done = await finish(*arguments)
        if what == "answer":
            raise StoreUnavailable("the answer was lost")
        return done

    monkeypatch.setattr(app.keys.store, "finish", losing)
    intake = await drained(app, cluster.config(topic))
    assert intake.tally.stored + intake.tally.duplicates == 2
    async with app:
        assert len(await app.queue.find(JobFilter(kind="ingest.parse"), 10)) == 2


async def test_message_that_fails_for_no_known_reason_is_a_dead_letter_in_the_end(
    cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, tries = cluster.topic(), []
    cluster.send(topic, [document("a", "text"), *jobs(1)])
    app = new_app(url).use("documents")

    async def broken(*arguments: Any, **options: Any) -> None:
        tries.append(1)
        raise ZeroDivisionError

    monkeypatch.setattr(app.documents, "add", broken)
    intake = await drained(app, cluster.config(topic))
    assert intake.tally.as_dict() == {"stored": 1, "duplicates": 0, "dead_letters": 1}
    assert len(tries) == 3
    (dead,) = cluster.dead_letters(topic)
    detail = dead.headers["penstock-detail"]
    assert (dead.reason, detail) == ("failed", b"ZeroDivisionError each time it was tried")


async def test_member_without_a_partition_drains_at_once(cluster: Cluster, url: str) -> None:
    topic, app = cluster.topic(), new_app(url)
    async with reading(app, cluster.config(topic)) as intake:
        idle = await drained(new_app(url), cluster.config(topic))
        assert idle.reader.lines == {}
        cluster.send(topic, jobs(1))
        await until(lambda: intake.tally.stored == 1, "what the other reads", PATIENCE)


async def test_only_what_is_accepted_is_carried_out(cluster: Cluster, url: str) -> None:
    topic = cluster.topic()
    cluster.send(topic, [document("a", "text"), *jobs(1)])
    accept = KafkaConfig().accept
    intake = await drained(new_app(url), cluster.config(topic, accept=accept))
    assert intake.tally.as_dict() == {"stored": 1, "duplicates": 0, "dead_letters": 1}
    (dead,) = cluster.dead_letters(topic)
    assert dead.reason == "not-accepted"


async def test_header_names_the_tenant_only_where_it_may(cluster: Cluster, tmp_path: Path) -> None:
    async def tenants(name: str, **settings: Any) -> list[str]:
        app = new_app(f"sqlite:///{tmp_path}/{name}.db")
        await drained(app, cluster.config(topic, group=f"{topic}-{name}", **settings))
        async with app:
            return sorted(job.tenant for job in await app.jobs(kind="noop"))

    topic = cluster.topic()
    cluster.send(topic, jobs(1), headers=[("tenant", "mill")])
    cluster.send(topic, jobs(1))
    cluster.send(topic, jobs(1), headers=[("tenant", "\n")])
    assert await tenants("fixed", tenant="ours") == ["ours"] * 3
    assert cluster.dead_letters(topic) == []
    assert await tenants("named", tenant="ours", tenant_header="tenant") == ["mill", "ours"]
    assert [one.reason for one in cluster.dead_letters(topic)] == ["header"]


async def test_redriven_message_is_carried_out_once_however_often_it_is_published(
    cluster: Cluster, url: str
) -> None:
    topic = cluster.topic()
    cluster.send(topic, [*jobs(2), b"poison"], key=b"k")
    narrow = cluster.config(topic, accept=("document",))
    intake = await drained(new_app(url), narrow)
    assert intake.tally.dead_letters == 3
    config = cluster.config(topic)
    for group in (topic, f"{topic}-once-more"):  # as if the first had died before it committed
        again = cluster.config(topic, group=group)
        done = await redrive_all(again, asyncio.Event())
        assert (done.redriven, done.skipped, done.topics) == (3, 0, {topic: 3})
    nothing = await redrive_all(config, asyncio.Event())
    assert (nothing.redriven, nothing.skipped) == (0, 0)
    intake = await drained(app := new_app(url), config)
    assert intake.tally.as_dict() == {"stored": 2, "duplicates": 2, "dead_letters": 2}
    async with app:
        assert len(await app.jobs(kind="noop")) == 2
    back = cluster.dead_letters(topic)[3:]
    assert [(one.key, one.value, one.reason) for one in back] == [(b"k", b"poison", "not-json")] * 2


async def test_topic_that_was_made_again_brings_new_messages(cluster: Cluster, url: str) -> None:
    """Its offsets start at 0 once more, also under a reader that goes on."""
    await make_again(cluster, url)


async def test_topic_of_an_old_broker_that_was_made_again_brings_new_messages(url: str) -> None:
    """It has no ids that could tell the one from the other."""
    await make_again(Cluster(old=True), url)


async def make_again(cluster: Cluster, url: str) -> None:
    topic = cluster.topic()
    app = new_app(url)
    async with reading(app, cluster.config(topic)) as intake:
        cluster.send(topic, jobs(5))
        await until(lambda: intake.tally.stored == 5, "the first messages", PATIENCE)
        cluster.mock.delete(topic)
        cluster.mock.create(topic, 1)
        cluster.send(topic, jobs(3))
        await until(lambda: intake.tally.stored == 8, "those of the new topic", PATIENCE)
        assert intake.tally.duplicates == 0
    again = await drained(new_app(url), cluster.config(topic))
    assert (again.tally.stored, again.tally.dead_letters) == (0, 0)


async def test_full_queue_pauses_partitions_until_there_is_room(
    cluster: Cluster, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    # Enough for either partition to be full if all that there is room for is of it.
    topic, count = cluster.topic(2), 2 * (41 + FULL)
    cluster.send(topic, jobs(count), partitions=2)
    app = new_app(url)

    @app.job("noop")
    async def noop(ctx: JobContext, number: int) -> None:
        """Makes room."""

    async with reading(app, cluster.config(topic, max_queued=40)) as intake:
        paused = lambda: all(line.paused for line in intake.reader.lines.values())  # noqa: E731
        await until(lambda: "not reading messages" in caplog.text, "a full queue", PATIENCE)
        await until(paused, "a pause", PATIENCE)
        # The count does not know of one that the other partition stores at that moment.
        await until(lambda: intake.tally.stored >= 40, "what there is room for", PATIENCE)
        assert intake.tally.stored <= 41
        async with app.running():
            await until(lambda: intake.tally.stored == count, "the rest", PATIENCE)
        going_on = lambda: not any(line.paused for line in intake.reader.lines.values())  # noqa: E731
        await until(going_on, "the pauses to end", PATIENCE)
    assert cluster.committed(topic, 2) == [count // 2] * 2
    async with app:
        assert len(await app.jobs(kind="noop", limit=1000)) == count


async def test_topic_that_is_not_there_is_not_waited_for_by_what_should_end(
    cluster: Cluster, url: str
) -> None:
    config = cluster.config("no-such-topic")
    with pytest.raises(IntakeError, match="no-such-topic"):
        await drained(new_app(url), config)
    with pytest.raises(IntakeError, match=r"no-such-topic\.dead"):
        await asyncio.wait_for(redrive_all(config, asyncio.Event()), PATIENCE)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"bootstrap": ""}, "say where Kafka is"),
        ({"topics": ()}, "say what to read"),
        ({"options": {"no.such.option": "1"}}, "No such configuration property"),
        ({"option_variables": {"sasl.password": "NOT_SET_ANYWHERE"}}, "set NOT_SET_ANYWHERE"),
        ({"produce": "no topic"}, "'no topic' is not the name of a topic"),
        ({"produce": "requests.dead"}, "neither one of topics nor produce"),
        ({"produce": "requests", "accept": ("job",)}, "accept must name ingest"),
    ],
)
async def test_settings_that_cannot_work_are_said(
    cluster: Cluster, url: str, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        await drained(new_app(url), cluster.config("requests", **settings))
