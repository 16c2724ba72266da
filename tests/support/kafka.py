"""A Kafka cluster for tests: librdkafka's own, which speaks the real protocol over TCP and can be
told to fail. KAFKA_BOOTSTRAP points the tests at another one instead; those that need failures
are skipped there."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from penstock import Penstock
from penstock.intake.run import KafkaIntake
from penstock.model.intake import REQUESTS, KafkaConfig
from tests.support.config_file import config_text
from tests.support.waiting import until

Value = Mapping[str, Any] | bytes | None
POINTER, NUMBER = ctypes.c_void_p, ctypes.c_int32
FETCH, OFFSET_COMMIT, PRODUCE, METADATA, JOIN_GROUP = 1, 8, 0, 3, 11
"""Kinds of requests, by Kafka's numbers."""
PATIENCE = 60.0
"""Group membership takes its time, on one core more so."""
QUICK = {
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "300",
    "topic.metadata.refresh.interval.ms": "1000",
    "reconnect.backoff.max.ms": "500",
    "broker.address.family": "v4",
}
"""What takes Kafka tens of seconds takes tests a few."""
CALM = QUICK | {"session.timeout.ms": "6000"}
"""The same for members that nobody kills: a pause of the machine is not taken for a death."""


def raw(value: Value) -> bytes | None:
    return json.dumps(value).encode() if isinstance(value, Mapping) else value


class Mock:
    """The cluster inside librdkafka, by way of the library that confluent-kafka has loaded."""

    def __init__(self, brokers: int = 2, *, old: bool = False) -> None:
        maps = Path("/proc/self/maps").read_text().splitlines()
        path = next(line.split()[-1] for line in maps if "librdkafka" in line)
        self._lib = ctypes.CDLL(path)
        self._declare()
        self._brokers = range(1, brokers + 1)
        conf = self._lib.rd_kafka_conf_new()
        problem = ctypes.create_string_buffer(200)
        for name, value in ((b"log_level", b"0"), (b"bootstrap.servers", b"127.0.0.1:1")):
            self._lib.rd_kafka_conf_set(conf, name, value, problem, 200)
        self._handle = self._lib.rd_kafka_new(0, conf, problem, 200)
        assert self._handle, problem.value
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._handle, brokers)
        self._lib.rd_kafka_mock_set_controller_id(self._cluster, 1)
        self._lib.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 200)
        if old:
            self._lib.rd_kafka_mock_set_apiversion(self._cluster, METADATA, 0, 9)
        self.bootstrap: str = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def _declare(self) -> None:
        text, size = ctypes.c_char_p, ctypes.c_size_t
        for name, answer, given in (
            ("rd_kafka_conf_new", POINTER, []),
            ("rd_kafka_conf_set", ctypes.c_int, [POINTER, text, text, text, size]),
            ("rd_kafka_flush", ctypes.c_int, [POINTER, ctypes.c_int]),
            ("rd_kafka_destroy", None, [POINTER]),
            ("rd_kafka_new", POINTER, [ctypes.c_int, POINTER, text, size]),
            ("rd_kafka_mock_cluster_new", POINTER, [POINTER, ctypes.c_int]),
            ("rd_kafka_mock_cluster_bootstraps", text, [POINTER]),
            ("rd_kafka_mock_set_controller_id", ctypes.c_int, [POINTER, NUMBER]),
            ("rd_kafka_mock_group_initial_rebalance_delay_ms", None, [POINTER, NUMBER]),
            ("rd_kafka_mock_set_apiversion", ctypes.c_int, [POINTER, *[ctypes.c_int16] * 3]),
            ("rd_kafka_mock_topic_create", ctypes.c_int, [POINTER, text, *[ctypes.c_int] * 2]),
            ("rd_kafka_mock_topic_delete", ctypes.c_int, [POINTER, text]),
            ("rd_kafka_mock_broker_set_down", ctypes.c_int, [POINTER, NUMBER]),
            ("rd_kafka_mock_broker_set_up", ctypes.c_int, [POINTER, NUMBER]),
            ("rd_kafka_mock_clear_request_errors", None, [POINTER, ctypes.c_int16]),
            (
                "rd_kafka_mock_push_request_errors_array",
                None,
                [POINTER, ctypes.c_int16, size, ctypes.POINTER(ctypes.c_int)],
            ),
        ):
            function = getattr(self._lib, name)
            function.restype, function.argtypes = answer, given

    def create(self, topic: str, partitions: int) -> None:
        self._lib.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)

    def delete(self, topic: str) -> None:
        assert self._lib.rd_kafka_mock_topic_delete(self._cluster, topic.encode()) == 0

    def down(self) -> None:
        """Connections are cut, and none is taken."""
        for broker in self._brokers:
            self._lib.rd_kafka_mock_broker_set_down(self._cluster, broker)

    def up(self) -> None:
        for broker in self._brokers:
            self._lib.rd_kafka_mock_broker_set_up(self._cluster, broker)

    def fail(self, request: int, error: int, times: int) -> None:
        """Answer the next requests of a kind with an error."""
        errors = (ctypes.c_int * times)(*[error] * times)
        self._lib.rd_kafka_mock_push_request_errors_array(self._cluster, request, times, errors)

    def send_with_header(self, topic: str, value: bytes, name: bytes) -> None:
        """Publish a message as no client of Python would: header names are text."""
        conf, problem = self._lib.rd_kafka_conf_new(), ctypes.create_string_buffer(200)
        servers = self.bootstrap.encode()
        self._lib.rd_kafka_conf_set(conf, b"bootstrap.servers", servers, problem, 200)
        handle = self._lib.rd_kafka_new(0, conf, problem, 200)
        in_topic = (1, ctypes.c_char_p(topic.encode()), 3, NUMBER(0))
        saying = (4, ctypes.c_char_p(value), ctypes.c_size_t(len(value)), 7, ctypes.c_int(2))
        header = (9, ctypes.c_char_p(name), ctypes.c_char_p(b"x"), ctypes.c_ssize_t(1))
        given = (*in_topic, *saying, *header, 0)
        assert self._lib.rd_kafka_producev(POINTER(handle), *given) == 0
        assert self._lib.rd_kafka_flush(handle, 60_000) == 0
        self._lib.rd_kafka_destroy(handle)

    def clear(self, request: int) -> None:
        self._lib.rd_kafka_mock_clear_request_errors(self._cluster, request)


class Dead(NamedTuple):
    """A dead letter."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]

    @property
    def reason(self) -> str:
        return (self.headers["penstock-reason"] or b"").decode()


class Cluster:
    """`old`: of before 2.8, where topics have no ids."""

    def __init__(self, *, old: bool = False) -> None:
        self._mock = None if os.environ.get("KAFKA_BOOTSTRAP") else Mock(old=old)
        self.bootstrap = os.environ.get("KAFKA_BOOTSTRAP") or self.mock.bootstrap

    @property
    def mock(self) -> Mock:
        if self._mock is None:
            pytest.skip("only the cluster of the tests can be told to fail")
        return self._mock

    @cached_property
    def _producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "log_level": 0, **QUICK_PRODUCER})

    def topic(self, partitions: int = 1) -> str:
        """A new one, and its dead-letter topic."""
        name = f"requests-{uuid.uuid4().hex[:12]}"
        if self._mock is not None:
            self._mock.create(name, partitions)
            self._mock.create(f"{name}.dead", 1)
        else:
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            new = [NewTopic(name, partitions, 1), NewTopic(f"{name}.dead", 1, 1)]
            for made in admin.create_topics(new).values():
                made.result()
        return name

    def send(
        self,
        topic: str,
        values: Sequence[Value],
        *,
        partitions: int = 1,
        key: bytes | None = None,
        headers: Sequence[tuple[str, str | bytes | None]] = (),
    ) -> None:
        """Publish, in turn to each partition."""
        failed: list[KafkaError] = []
        for number, value in enumerate(values):
            self._producer.produce(
                topic,
                raw(value),
                key,
                partition=number % partitions,
                headers=list(headers),
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        assert self._producer.flush(PATIENCE) == 0
        assert not failed

    def committed(self, topic: str, partitions: int = 1) -> list[int]:
        """What the group has committed, by partition; negative: nothing."""
        with _closing(Consumer(self._options(topic))) as consumer:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            return [one.offset for one in consumer.committed(places, timeout=PATIENCE)]

    def dead_letters(self, topic: str) -> list[Dead]:
        """All there are."""
        options = self._options(topic) | {"group.id": uuid.uuid4().hex}
        with _closing(Consumer(options)) as consumer:
            place = TopicPartition(f"{topic}.dead", 0, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE)
            consumer.assign([place])
            found: list[Dead] = []
            give_up = time.monotonic() + PATIENCE
            while len(found) < end:
                assert time.monotonic() < give_up
                message = consumer.poll(1.0)
                if message is not None and message.error() is None:
                    headers: Any = message.headers() or ()
                    found.append(Dead(message.key(), message.value(), dict(headers)))
            return found

    def _options(self, topic: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": topic,
            "log_level": 0,
            "enable.auto.commit": "false",
        }

    def config(self, topic: str, **settings: Any) -> KafkaConfig:
        """Everything is accepted, by a group that is called like the topic."""
        given: dict[str, Any] = {
            "bootstrap": self.bootstrap,
            "topics": (topic,),
            "group": topic,
            "dead_letter_topic": f"{topic}.dead",
            "accept": REQUESTS,
            "options": CALM,
        }
        return KafkaConfig(**given | settings)

    def file(self, folder: Path, topic: str, **settings: Any) -> str:
        """The same for a process: the name of a config file, which is JSON and so YAML."""
        given = {
            "bootstrap": self.bootstrap,
            "topics": [topic],
            "group": topic,
            "dead_letter_topic": f"{topic}.dead",
            "accept": list(REQUESTS),
            "options": QUICK,
        }
        others = settings.pop("others", {})
        path = folder / "kafka.yaml"
        path.write_text(config_text({**others, "intake": {"kafka": given | settings}}))
        return str(path)


QUICK_PRODUCER = {"linger.ms": 0, "broker.address.family": "v4"}


class _closing:  # noqa: N801
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def __enter__(self) -> Consumer:
        return self._consumer

    def __exit__(self, *error: object) -> None:
        self._consumer.close()


async def drained(app: Penstock, config: KafkaConfig) -> KafkaIntake:
    """All that is in the topics now, taken in. The app is opened for it."""
    intake = KafkaIntake(app, config)
    async with app, asyncio.timeout(PATIENCE):
        await intake.run(asyncio.Event(), drain=True)
    return intake


@asynccontextmanager
async def reading(app: Penstock, config: KafkaConfig) -> AsyncIterator[KafkaIntake]:
    """An intake that reads on, for as long as the block lasts; then stopped as by a signal."""
    intake, stop = KafkaIntake(app, config), asyncio.Event()
    async with app:
        task = asyncio.create_task(intake.run(stop))
        try:
            await until(lambda: intake.reader.lines or task.done(), "partitions", PATIENCE)
            yield intake
        finally:
            stop.set()
            await task
