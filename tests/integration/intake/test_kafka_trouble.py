"""Whatever happens to brokers, members, processes or the queue: as many jobs as messages."""

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from penstock import Penstock
from penstock.errors import IntakeError, Unavailable
from penstock.intake.receive import Receiver
from penstock.intake.record import MessageRecord, MessageRefused
from penstock.intake.run import KafkaIntake, redrive_all
from penstock.model.intake import KafkaConfig
from tests.conformance.support import BACKENDS
from tests.support.cli import Cli, Running, wait_until
from tests.support.database_servers import RedisServer, free_port
from tests.support.kafka import (
    CALM,
    FETCH,
    JOIN_GROUP,
    OFFSET_COMMIT,
    PATIENCE,
    PRODUCE,
    QUICK,
    Cluster,
    Value,
    drained,
    raw,
    reading,
)
from tests.support.waiting import look_on, until


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def new_app(url: str, **settings: Any) -> Penstock:
    return Penstock(url, durable=False, **settings)


def jobs(count: int, first: int = 0) -> list[Value]:
    return [
        {"kind": "job", "job": "noop", "payload": {"number": n}}
        for n in range(first, first + count)
    ]


async def numbers(app: Penstock) -> list[int]:
    """Of the jobs there are, sorted. None twice means no duplicates."""
    return sorted(job.payload["number"] for job in await app.jobs(kind="noop", limit=10_000))


async def test_partitions_that_move_between_members_lose_and_repeat_nothing(
    cluster: Cluster, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, count, more = cluster.topic(4), 1000, 200
    ours, theirs = new_app(url), new_app(url)
    config = cluster.config(topic)
    cluster.send(topic, jobs(count), partitions=4)
    async with reading(ours, config) as first:
        await until(lambda: first.tally.stored > 0, "the first message", PATIENCE)
        async with reading(theirs, config) as second:
            await until(lambda: len(first.reader.lines) == 2, "a rebalance", PATIENCE)
            cluster.send(topic, jobs(more, count), partitions=4)
            await until(lambda: second.tally.stored > 0, "progress of the second", PATIENCE)
        await until(lambda: len(first.reader.lines) == 4, "the way back", PATIENCE)
        cluster.send(topic, jobs(8, count + more), partitions=4)
        total = count + more + 8
        await until(lambda: first.tally.stored + second.tally.stored == total, "the last", PATIENCE)
    assert first.tally.dead_letters == second.tally.dead_letters == 0
    # Where this machine stood still, some are read again.
    if "lost" not in caplog.text and "cannot commit" not in caplog.text:
        assert first.tally.duplicates + second.tally.duplicates == 0, "committed before they moved"
    async with ours:
        assert await numbers(ours) == list(range(total))
    assert sum(cluster.committed(topic, 4)) == total


async def test_brokers_that_fail_and_go_away_cost_only_time(cluster: Cluster, url: str) -> None:
    topic, app = cluster.topic(2), new_app(url)
    async with reading(app, cluster.config(topic)) as intake:
        cluster.mock.fail(FETCH, KafkaError.NOT_LEADER_FOR_PARTITION, 5)
        cluster.mock.fail(OFFSET_COMMIT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, 3)
        cluster.send(topic, jobs(50), partitions=2)
        await until(lambda: intake.tally.stored == 50, "messages past errors", PATIENCE)
        cluster.mock.down()
        await look_on(1.0)  # long enough for it to be noticed
        cluster.mock.up()
        cluster.send(topic, jobs(50, 50), partitions=2)
        await until(lambda: intake.tally.stored == 100, "messages after the outage", PATIENCE)
    assert cluster.committed(topic, 2) == [50, 50]
    async with app:
        assert await numbers(app) == list(range(100))


async def test_brokers_that_stay_away_are_told_of_once(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client tries twenty times a second, and would fill a disk."""
    app, stop = new_app(url), asyncio.Event()
    config = KafkaConfig(bootstrap=f"127.0.0.1:{free_port()}", topics=("requests",))
    intake = KafkaIntake(app, config)
    async with app, asyncio.timeout(PATIENCE):
        task = asyncio.create_task(intake.run(stop))
        await until(lambda: "brokers are down" in caplog.text, "a word of it", PATIENCE)
        await look_on(1.0)
        stop.set()
        await task
    said = [record.getMessage() for record in caplog.records if record.name == "penstock.intake"]
    assert len(said) == 2, said


async def test_drain_ends_where_the_group_may_not_read(cluster: Cluster, url: str) -> None:
    cluster.mock.fail(JOIN_GROUP, KafkaError.GROUP_AUTHORIZATION_FAILED, 1000)
    try:
        with pytest.raises(IntakeError, match="Group authorization failed"):
            await drained(new_app(url), cluster.config(cluster.topic()))
    finally:
        cluster.mock.clear(JOIN_GROUP)


async def test_nothing_is_committed_past_a_dead_letter_that_cannot_be_published(
    cluster: Cluster, url: str
) -> None:
    topic, app = cluster.topic(), new_app(url)
    cluster.send(topic, [*jobs(1), b"poison", *jobs(1, 1)])
    cluster.mock.fail(PRODUCE, KafkaError.TOPIC_AUTHORIZATION_FAILED, 1000)
    try:
        async with reading(app, cluster.config(topic)) as intake:
            await until(lambda: cluster.committed(topic) == [1], "the first", PATIENCE)
            await look_on(1.5)
            assert intake.tally.as_dict() == {"stored": 1, "duplicates": 0, "dead_letters": 0}
            cluster.mock.clear(PRODUCE)
            await until(lambda: intake.tally.stored == 2, "the rest", PATIENCE)
    finally:
        cluster.mock.clear(PRODUCE)
    assert cluster.committed(topic) == [3]
    assert len(cluster.dead_letters(topic)) == 1


class Closed:
    """A broker that takes no dead letters."""

    async def origin(self, record: MessageRecord) -> str:
        return "cluster/topic"

    async def bury(self, record: MessageRecord, refused: MessageRefused, key: str) -> None:
        raise Unavailable("the dead-letter topic is not there")


async def test_message_that_waits_is_told_of_although_other_partitions_go_on(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app(url)
    closed = Closed()
    receiver = Receiver(app, KafkaConfig(accept=("job",)), closed.origin, closed.bury)
    async with app, asyncio.timeout(PATIENCE):
        poison, number, never = MessageRecord("t", 0, 0, 0, None, b"poison"), 0, asyncio.Event()
        waiting = asyncio.create_task(receiver.receive(poison, never))
        while "degraded, t[0]@0 waits" not in caplog.text:
            (value,) = map(raw, jobs(1, number))
            await receiver.receive(MessageRecord("t", 1, number, 0, None, value), never)
            number += 1
        waiting.cancel()
    assert receiver.tally.stored == number > 0


@pytest.mark.parametrize("times", [1, 2], ids=["its value", "its key or headers"])
async def test_message_too_large_for_the_dead_letter_topic_is_named_there(
    cluster: Cluster, url: str, times: int
) -> None:
    topic = cluster.topic()
    config = cluster.config(topic)
    cluster.send(topic, [b"poison", *jobs(1)], key=b"k", headers=[("trace", "1")])
    cluster.mock.fail(PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE, times)
    intake = await drained(new_app(url), config)
    assert intake.tally.as_dict() == {"stored": 1, "duplicates": 0, "dead_letters": 1}
    (dead,) = cluster.dead_letters(topic)
    assert (dead.value, dead.headers["penstock-left-out"]) == (None, b"6")
    assert (dead.reason, dead.headers["penstock-offset"]) == ("not-json", b"0")
    assert (dead.key, "trace" in dead.headers) == ((b"k", True) if times == 1 else (None, False))
    done = await redrive_all(config, asyncio.Event())
    assert (done.redriven, done.skipped) == (0, 1)


async def test_messages_wait_while_the_queue_is_away(cluster: Cluster, tmp_path: Path) -> None:
    """For longer than Kafka waits for a member that does not poll. It needs no store."""
    server = RedisServer().start()
    topic, count = cluster.topic(2), 200
    app = Penstock(server.url, allow_volatile=True)
    options = QUICK | {"session.timeout.ms": "6000", "max.poll.interval.ms": "6000"}
    config = cluster.config(topic, accept=("job",), options=options)
    async with reading(app, config) as intake:
        lines = dict(intake.reader.lines)
        cluster.send(topic, jobs(10), partitions=2)
        await until(lambda: intake.tally.stored == 10, "the first", PATIENCE)
        server.stop()
        cluster.send(topic, jobs(count, 10), partitions=2)
        paused = lambda: all(line.paused for line in intake.reader.lines.values())  # noqa: E731
        await until(paused, "a pause", PATIENCE)
        await look_on(6.5)
        assert intake.tally.stored == 10
        server.start()
        await until(lambda: intake.tally.stored == 10 + count, "the rest", PATIENCE)
        assert await numbers(app) == list(range(10 + count))
        assert intake.tally.dead_letters == 0
        assert intake.reader.lines == lines, "no partition has moved"
    assert cluster.committed(topic, 2) == [105, 105]
    server.remove()


def start(cli: Cli, config: str, *arguments: str) -> Running:
    running = cli.start("intake", "kafka", "--config", config, "--json", *arguments)
    wait_until(lambda: '"started"' in running.out, f"the intake: {running.err}", PATIENCE)
    return running


def last_line(running: Running, code: int = 0) -> dict[str, Any]:
    done = running.end(PATIENCE)
    assert done.code == code, done.err
    said: dict[str, Any] = done.lines[-1]
    return said


def stored(cli: Cli) -> list[int]:
    app = Penstock(cli.url, durable=False)
    return cli.call(numbers(app), app)


def test_process_that_is_killed_before_it_commits_repeats_nothing(
    cluster: Cluster, cli: Cli
) -> None:
    topic, count = cluster.topic(2), 40
    config = cluster.file(cli.folder, topic)
    documents = [{"kind": "document", "id": f"d{n % 4}", "text": f"text {n}"} for n in range(8)]
    cluster.send(topic, [*jobs(count), *documents, b"poison", b"poison"], partitions=2)
    cluster.mock.fail(OFFSET_COMMIT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, 100_000)
    try:
        running = start(cli, config)
        wait_until(lambda: running.err.count("to the dead-letter topic") >= 2, "the last", PATIENCE)
        wait_until(lambda: len(stored(cli)) == count, "all jobs", PATIENCE)
        running.send(signal.SIGKILL)
        running.process.wait(PATIENCE)
    finally:
        cluster.mock.clear(OFFSET_COMMIT)
    assert max(cluster.committed(topic, 2)) < 0
    before = generations(cli)
    rest = asyncio.run(drained(new_app(cli.url), cluster.config(topic, options=QUICK))).tally
    # More, where the machine stood still and it read some of them once more.
    assert (rest.stored, rest.duplicates >= count + len(documents)) == (0, True)
    assert stored(cli) == list(range(count))
    assert generations(cli) == before
    # A dead letter may be there twice, under one name.
    dead = cluster.dead_letters(topic)
    assert len({one.headers["penstock-message-id"] for one in dead}) == 2


def generations(cli: Cli) -> list[tuple[str, int]]:
    app = Penstock(cli.url, durable=False)
    app.use("documents")

    async def look() -> list[tuple[str, int]]:
        return sorted((one.ref.id, one.generation) for one in await app.documents.documents())

    return cli.call(look(), app)


def test_processes_killed_at_any_time_lose_and_repeat_nothing(cluster: Cluster, cli: Cli) -> None:
    topic, count = cluster.topic(2), 1500
    config = cluster.file(cli.folder, topic)
    cluster.send(topic, jobs(count), partitions=2)
    before = 0
    for _ in range(2):
        running = start(cli, config)
        # All, where it was quicker than the look at it.
        wait_until(lambda: len(stored(cli)) > min(before, count - 1), "progress", PATIENCE)  # noqa: B023
        running.send(signal.SIGKILL)
        running.process.wait(PATIENCE)
        before = len(stored(cli))
    rest = asyncio.run(drained(new_app(cli.url), cluster.config(topic, options=QUICK))).tally
    assert rest.dead_letters == 0
    assert stored(cli) == list(range(count))
    assert cluster.committed(topic, 2) == [count // 2] * 2


def test_stop_stores_what_is_under_way_commits_it_and_leaves_the_rest(
    cluster: Cluster, cli: Cli
) -> None:
    # However late the stop comes, there is no room for the rest.
    topic, count = cluster.topic(), 2000
    config = cluster.file(cli.folder, topic, options=CALM, max_queued=count // 2)
    cluster.send(topic, jobs(count))
    running = start(cli, config)
    wait_until(lambda: len(stored(cli)) > 0, "the first job", PATIENCE)
    running.send(signal.SIGTERM)
    said = last_line(running)
    assert said["event"] == "stopped"
    # Neither more nor less than was stored: the next to read has no duplicates.
    assert cluster.committed(topic) == [said["stored"]]
    assert stored(cli) == list(range(said["stored"]))
    assert said["stored"] < count
    rest = asyncio.run(drained(new_app(cli.url), cluster.config(topic))).tally
    assert (rest.stored, rest.duplicates) == (count - said["stored"], 0)
    assert stored(cli) == list(range(count))


def test_stop_ends_although_brokers_are_away(cluster: Cluster, cli: Cli) -> None:
    topic = cluster.topic()
    config = cluster.file(cli.folder, topic)
    cluster.send(topic, jobs(3))
    cluster.mock.fail(OFFSET_COMMIT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, 1000)
    running = start(cli, config)
    wait_until(lambda: len(stored(cli)) == 3, "the jobs", PATIENCE)
    cluster.mock.down()
    try:
        running.send(signal.SIGTERM)
        assert last_line(running)["stored"] == 3
    finally:
        cluster.mock.clear(OFFSET_COMMIT)
        cluster.mock.up()


def test_documents_go_to_postgres_jobs_to_redis_from_one_config_file(
    cluster: Cluster, cli: Cli
) -> None:
    topic = cluster.topic()
    cli.environment.pop("PENSTOCK_QUEUE")
    others = {
        "queue": BACKENDS["redis"].url(cli.folder),
        "store": BACKENDS["postgres"].url(cli.folder),
        "blobs": str(cli.folder / "blobs"),
    }
    config = cluster.file(cli.folder, topic, others=others)
    cluster.send(
        topic,
        [
            {"kind": "document", "id": "mill", "text": "The mill stands by the river."},
            {"kind": "search", "question": "Who built mills?"},
            *jobs(3),
            b"poison",
        ],
    )
    said = cli("intake", "kafka", "--config", config, "--drain", "--json").lines[-1]
    assert (said["stored"], said["duplicates"], said["dead_letters"]) == (5, 0, 1)
    asyncio.run(read_all_again(config))
    redriven = cli("intake", "kafka", "--config", config, "--redrive", "--json").lines[-1]
    assert (redriven["redriven"], redriven["skipped"]) == (2, 0)


async def read_all_again(config: str) -> None:
    """As another group."""
    app = Penstock(config_file=config)
    again = await drained(app, replace(app.config.intake.kafka, group="again"))
    assert again.tally.as_dict() == {"stored": 0, "duplicates": 5, "dead_letters": 1}
    async with app:
        assert [one.ref.id for one in await app.documents.documents()] == ["mill"]


async def test_stop_does_not_wait_for_room_in_the_queue(
    cluster: Cluster, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, app, stop = cluster.topic(), new_app(url), asyncio.Event()
    cluster.send(topic, jobs(3))
    intake = KafkaIntake(app, cluster.config(topic, max_queued=1, shutdown_seconds=600.0))
    async with app:
        task = asyncio.create_task(intake.run(stop))
        await until(lambda: "not reading messages" in caplog.text, "a full queue", PATIENCE)
        stop.set()
        await asyncio.wait_for(task, PATIENCE)
        assert await numbers(app) == [0]
    assert cluster.committed(topic) == [1]


async def test_second_stop_leaves_what_cannot_be_stored(cluster: Cluster, tmp_path: Path) -> None:
    server = RedisServer().start()
    topic, app = cluster.topic(), Penstock(server.url, allow_volatile=True)
    config = cluster.config(topic, accept=("job",), shutdown_seconds=60.0)
    async with reading(app, config) as intake:
        cluster.send(topic, jobs(1))
        await until(lambda: intake.tally.stored == 1, "the first", PATIENCE)
        server.stop()
        cluster.send(topic, jobs(1, 1))
        await until(lambda: any(not one.idle for one in intake.reader.lines.values()), "it")
        await asyncio.wait_for(intake.reader.hasten(), PATIENCE)
        server.start()
    assert cluster.committed(topic) == [1]
    rest = await drained(Penstock(server.url, allow_volatile=True), config)
    assert rest.tally.stored == 1
    server.remove()
