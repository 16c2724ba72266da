"""Publishes messages that cannot be processed to the dead-letter topic, with the reason in
headers; and redrives them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.errors import Unavailable
from penstock.intake.client import for_others, made
from penstock.intake.record import ID_LIMIT, MESSAGE_ID, MessageRecord, MessageRefused

log = logging.getLogger("penstock.intake")

OURS = "penstock-"
REASON, DETAIL = "penstock-reason", "penstock-detail"
TOPIC, PARTITION, OFFSET = "penstock-topic", "penstock-partition", "penstock-offset"
TIMESTAMP, KEY, IDENTITY = "penstock-timestamp", "penstock-key", "penstock-message-id"
LEFT_OUT = "penstock-left-out"
"""Size of a value that was too large for the dead-letter topic."""
DETAIL_LIMIT = 1000
MAX_BYTES = 1_000_000_000
"""The broker decides what is too large, so the client's own limit must not come first."""
PUBLISH_SECONDS = 10.0
LOOK_SECONDS = 0.1
"""Polling interval: another thread may have received the report that this one waits for."""
TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)

Headers = list[tuple[str, str | bytes | None]]
Form = tuple[bytes | None, bytes | None, Headers]
"""Key, value, headers."""


class TooLarge(Unavailable):
    """A message is too large for its topic."""


class Publisher:
    """Publishes messages, and waits until the brokers have them."""

    def __init__(self, given: dict[str, Any]) -> None:
        own = {
            "acks": "all",
            "enable.idempotence": "true",
            "message.max.bytes": str(MAX_BYTES),
            "message.timeout.ms": str(int(PUBLISH_SECONDS * 1000)),
            "linger.ms": "0",
        }
        self._producer: Producer = made(Producer, for_others(given) | own)

    async def publish(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        """Publish a message; returns once it is stored. Raises Unavailable if it may not be,
        TooLarge if it is not."""
        await asyncio.to_thread(self._publish, topic, key, value, headers)

    def _publish(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        told: list[KafkaError | None] = []
        try:
            self._producer.produce(
                topic, value, key, headers=headers, on_delivery=lambda error, _: told.append(error)
            )
            while not told:
                self._producer.poll(LOOK_SECONDS)
        except KafkaException as error:
            told = [error.args[0]]
        except BufferError as error:
            raise Unavailable(f"cannot publish to {topic}: {error}") from None
        if told[0] is not None:
            kind = TooLarge if told[0].code() in TOO_LARGE else Unavailable
            raise kind(f"cannot publish to {topic}: {told[0].str()}")


class DeadLetterTopic:
    def __init__(self, publisher: Publisher, topic: str) -> None:
        self._publisher = publisher
        self._topic = topic

    async def bury(self, record: MessageRecord, refused: MessageRefused, identity: str) -> None:
        """Publish a message with the reason and its origin."""
        *larger, smallest = _forms(record, _said(record, refused, identity))
        for form in larger:
            with suppress(TooLarge):
                await self._publisher.publish(self._topic, *form)
                return
        await self._publisher.publish(self._topic, *smallest)


def _forms(record: MessageRecord, said: Headers) -> list[Form]:
    """Variants of a dead letter: complete; without its value; and without anything that could be
    large.

    The message is where it came from for as long as that topic keeps it. Waiting would not make
    it smaller, and hold up all that is behind it.
    """
    left_out = (LEFT_OUT, str(len(record.value or b"")).encode())
    headers = [*_without_ours(record), *said]
    small = [header for header in said if header[0] != KEY]
    return [
        (record.key, record.value, headers),
        (record.key, None, [*headers, left_out]),
        (None, None, [*small, left_out]),
    ]


def _without_ours(record: MessageRecord) -> Headers:
    return [(name, value) for name, value in record.headers or () if not name.startswith(OURS)]


def _said(record: MessageRecord, refused: MessageRefused, identity: str) -> Headers:
    return [
        (REASON, refused.reason.encode()),
        (DETAIL, refused.detail[:DETAIL_LIMIT].encode("utf-8", "replace")),
        (TOPIC, record.topic.encode()),
        (PARTITION, str(record.partition).encode()),
        (OFFSET, str(record.offset).encode()),
        (TIMESTAMP, str(record.timestamp).encode()),
        (KEY, record.key),
        (IDENTITY, identity.encode()),
    ]


@dataclass(slots=True)
class RepublishResult:
    """The result of republishing dead letters."""

    redriven: int = 0
    skipped: int = 0
    """Without a value, or from topics that are not consumed."""
    topics: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


async def redrive(
    publisher: Publisher, record: MessageRecord, topics: tuple[str, ...]
) -> str | None:
    """Publish a dead letter to the topic it came from, and return that; None if it cannot be.

    Where it had no `message-id` it gets one, so that published twice it is carried out once.
    """
    topic = (record.header(TOPIC) or b"").decode("utf-8", "replace")
    if topic not in topics or record.header(LEFT_OUT) is not None or record.value is None:
        log.warning("skipped %s: no value, or not from a topic read here", record.place)
        return None
    headers = _without_ours(record)
    identity = record.header(IDENTITY)
    if identity is not None and record.header(MESSAGE_ID) is None:
        headers.append((MESSAGE_ID, identity[:ID_LIMIT]))
    await publisher.publish(topic, record.header(KEY), record.value, headers)
    return topic
