"""Reads and commits Kafka messages.

All calls of the consumer are made in one thread, so that none blocks the event loop, and the last
in one that can be left behind; messages are processed on the loop, one line per partition. An
offset is committed only once everything before it is stored or in the dead-letter topic.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.errors import IntakeError
from penstock.intake.client import ASK_SECONDS, made, reason
from penstock.intake.partition import MessageLine, Receive
from penstock.intake.record import MessageRecord
from penstock.model.intake import KafkaConfig

log = logging.getLogger("penstock.intake")

T = TypeVar("T")
Place = tuple[str, int]

BATCH = 32
POLL_SECONDS = 0.2
COMMIT_SECONDS = 1.0
PAUSE_SECONDS = 0.5
"""Maximum wait for a full line, before its partition is paused."""
REFUSED = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
"""Errors on which reading waits until somebody creates the topic or grants the permission; a drain
should exit."""
HEADERS = methodcaller("headers")
"""Not `message.headers()`: of a name that is not UTF-8 the client makes an answer with an error
set. The interpreter notices that here (SystemError), and there only until the call is frequent."""
REVOKE_SECONDS = 5.0
"""How long a revoked partition is kept for the message in progress: the whole group waits."""
LEAVE_SECONDS = 10.0
"""How long leaving the group may take. A client whose brokers are away may wait for them for ever;
then the group notices by its session timeout."""


class TopicReader:
    """Reads topics as a member of a group, and passes each message to `receive`, in the order of
    its partition. Messages that `receive` has returned for are committed."""

    def __init__(
        self,
        given: dict[str, Any],
        config: KafkaConfig,
        topics: Iterable[str],
        group: str,
        receive: Receive,
        assigned: Callable[[str, int], None] = lambda topic, partition: None,
    ) -> None:
        own = {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "enable.partition.eof": "true",
            # Only partitions that move are interrupted, not all of them.
            "partition.assignment.strategy": "cooperative-sticky",
            "on_commit": self._on_commit,
        }
        # What the client reads ahead, for each partition: a few of the largest.
        ahead = {"queued.max.messages.kbytes": str(8 * max(1024, config.message_bytes // 1024))}
        self._consumer: Consumer = made(Consumer, ahead | given | own)
        self._topics = list(topics)
        self._tell: Callable[[KafkaError], None] = given["error_cb"]
        self._drain = False
        self._grace = config.shutdown_seconds
        self._receive = receive
        self._assigned = assigned
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-kafka")
        self._lines: dict[Place, MessageLine] = {}
        self._committed: dict[Place, int] = {}
        self._member = False

    @property
    def lines(self) -> dict[Place, MessageLine]:
        """The lines of the assigned partitions."""
        return self._lines

    async def run(self, stop: asyncio.Event, *, drain: bool = False) -> None:
        """Read until `stop` is set; with `drain`, up to the end of each partition at its
        assignment. Raises IntakeError if Kafka rejects the request."""
        self._loop, self._drain = asyncio.get_running_loop(), drain
        try:
            await self._call(self._subscribe)
            commit_at = self._loop.time() + COMMIT_SECONDS
            while not stop.is_set() and not (drain and self._drained()):
                for line, message in await self._call(self._pull):
                    self._sort(line, message)
                await self._control()
                if self._loop.time() >= commit_at:
                    await self._commit()
                    commit_at = self._loop.time() + COMMIT_SECONDS
        except KafkaException as error:
            raise IntakeError(f"Kafka: {reason(error)}") from None
        finally:
            await self._leave()

    async def hasten(self) -> None:
        """End the messages that a stop waits for."""
        await asyncio.gather(*(line.end(0) for line in self._lines.values()))

    # In the thread of the consumer

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        return await self._loop.run_in_executor(self._thread, function, *arguments)

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            self._topics,
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def _pull(self) -> list[tuple[MessageLine | None, Message]]:
        """Poll a batch; returns at once with what is available. Each message comes with its current
        line, because at the next call its partition may be revoked, or even assigned again."""
        pulled: list[tuple[MessageLine | None, Message]] = []
        while len(pulled) < BATCH:
            message = self._consumer.poll(0 if pulled else POLL_SECONDS)
            if message is None:
                break
            place = (message.topic() or "", message.partition() or 0)
            pulled.append((self._lines.get(place), message))
        return pulled

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        ends = {(one.topic, one.partition): self._end_of(one) for one in partitions}
        self._in_loop(self._open(ends))
        consumer.incremental_assign(partitions)
        consumer.resume(partitions)  # they may have been paused when they were here before

    def _end_of(self, partition: TopicPartition) -> int | None:
        """Return the offset at which a drain ends."""
        if not self._drain:
            return None
        _, end = self._consumer.get_watermark_offsets(partition, timeout=ASK_SECONDS)
        return end

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        ended = self._in_loop(self._close(partitions, REVOKE_SECONDS))
        self._commit_now(self._news(ended))

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Drop partitions that another member has taken over, and may have committed further."""
        log.warning("lost %d partitions to other consumers", len(partitions))
        self._in_loop(self._close(partitions, 0))

    def _in_loop(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _commit_now(self, offsets: dict[Place, int]) -> None:
        """Commit synchronously. A message that is not committed is read again and recognized."""
        if not offsets:
            return
        try:
            self._consumer.commit(offsets=_as_offsets(offsets), asynchronous=False)
        except KafkaException as error:
            log.warning("cannot commit, messages may be read again: %s", reason(error))
            self._forget(offsets)

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        failed = {(one.topic, one.partition): error or one.error for one in partitions}
        for place, why in failed.items():
            if why is not None:
                log.warning("cannot commit, retrying: %s", why.str())
                self._forget([place])

    def _forget(self, places: Iterable[Place]) -> None:
        for place in places:
            self._committed.pop(place, None)

    # On the event loop

    async def _open(self, ends: dict[Place, int | None]) -> None:
        self._member = True
        for place, end in ends.items():
            self._assigned(*place)
            self._forget([place])
            self._lines[place] = MessageLine(self._receive, end)

    async def _close(
        self, partitions: list[TopicPartition], grace: float
    ) -> dict[Place, MessageLine]:
        places = [(one.topic, one.partition) for one in partitions]
        ended = {place: self._lines.pop(place) for place in places if place in self._lines}
        await asyncio.gather(*(line.end(grace) for line in ended.values()))
        return ended

    async def _control(self) -> None:
        """Wait briefly for full lines. Those that stay full are paused until they have room: a
        pause makes the client drop its read-ahead."""
        full = [line for line in self._lines.values() if not line.paused]
        await _some_time([line.room.wait() for line in full if not line.room.is_set()])
        pause: list[TopicPartition] = []
        resume: list[TopicPartition] = []
        for place, line in self._lines.items():
            line.check()
            if line.paused == line.room.is_set():
                (resume if line.paused else pause).append(TopicPartition(*place))
                line.paused = not line.paused
        if pause:
            await self._call(self._consumer.pause, pause)
        if resume:
            await self._call(self._consumer.resume, resume)

    def _sort(self, line: MessageLine | None, message: Message) -> None:
        error = message.error()
        if error is None:
            if line is not None:
                line.add(_record(message))
        elif error.code() == KafkaError._PARTITION_EOF:
            if line is not None:
                line.at_end = True
        elif error.fatal() or (self._drain and error.code() in REFUSED):
            raise IntakeError(f"Kafka: {error.str()}")
        else:
            self._tell(error)

    def _drained(self) -> bool:
        return self._member and all(line.at_end and line.idle for line in self._lines.values())

    def _news(self, lines: dict[Place, MessageLine]) -> dict[Place, int]:
        """Offsets to commit."""
        found = {
            place: line.done
            for place, line in lines.items()
            if line.done is not None and line.done != self._committed.get(place)
        }
        self._committed |= found
        return found

    async def _commit(self) -> None:
        if offsets := _as_offsets(self._news(self._lines)):
            await self._call(partial(self._consumer.commit, offsets=offsets, asynchronous=True))

    async def _leave(self) -> None:
        """Stop reading: finish and commit the messages in progress, and leave the group."""
        await asyncio.gather(*(line.end(self._grace) for line in self._lines.values()))
        try:
            await self._call(self._commit_now, self._news(self._lines))
            self._lines.clear()
            await self._close_consumer()
        finally:
            self._thread.shutdown(wait=False)

    async def _close_consumer(self) -> None:
        """Leave the group, in a thread of its own: the process ends although it does not return."""
        closed: Future[None] = Future()
        closed.set_running_or_notify_cancel()  # so that a late end finds it as it was

        def close() -> None:
            try:
                self._consumer.close()
            except BaseException as error:
                closed.set_exception(error)
            else:
                closed.set_result(None)

        threading.Thread(target=close, name="penstock-kafka-leave", daemon=True).start()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await asyncio.wrap_future(closed)
        except TimeoutError:
            log.warning("Kafka did not let go of this reader within %g s", LEAVE_SECONDS)


async def _some_time(waits: Sequence[Awaitable[Any]]) -> None:
    """Wait for all of them, at most PAUSE_SECONDS."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PAUSE_SECONDS):
            await asyncio.gather(*waits)


def _as_offsets(offsets: dict[Place, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, at) for (topic, partition), at in offsets.items()]


def _record(message: Message) -> MessageRecord:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None  # noqa: PT018
    try:
        headers: Any = HEADERS(message) or ()
    except SystemError:
        headers = None
    return MessageRecord(
        topic,
        partition,
        offset,
        message.timestamp()[1],
        message.key(),
        message.value(),
        None if headers is None else tuple(headers),
    )
