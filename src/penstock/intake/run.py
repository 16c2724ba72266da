"""Runs the Kafka intake."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ConfigError, Unavailable
from penstock.intake.client import Topics, options
from penstock.intake.dead_letters import DeadLetterTopic, Publisher, RepublishResult, redrive
from penstock.intake.kafka import TopicReader
from penstock.intake.receive import MessageCounts, Receiver
from penstock.intake.record import MessageRecord
from penstock.model.intake import KafkaConfig

if TYPE_CHECKING:
    from penstock.app import Penstock

log = logging.getLogger("penstock.intake")

PURGE_SECONDS = 3600.0
RETRY_SECONDS = 1.0


class KafkaIntake:
    """Reads topics into an app. Create it before the app is opened, run it after."""

    def __init__(self, app: Penstock, config: KafkaConfig) -> None:
        if not config.topics:
            raise ConfigError("say what to read: intake.kafka.topics")
        given = options(config)
        self._app = app
        self._topics = Topics(given)
        dead_letters = DeadLetterTopic(Publisher(given), config.dead_letter_topic)
        self._receiver = Receiver(app, config, self._topics.origin, dead_letters.bury)
        self._purges = set(config.accept) != {"job"}
        self.reader = TopicReader(
            given, config, config.topics, config.group, self._receiver.receive, self._topics.forget
        )

    @property
    def tally(self) -> MessageCounts:
        return self._receiver.tally

    async def run(self, stop: asyncio.Event, *, drain: bool = False) -> None:
        """See `TopicReader.run`."""
        purging = asyncio.create_task(self._purge(), name="penstock-purge")
        try:
            await self.reader.run(stop, drain=drain)
        finally:
            purging.cancel()
            await asyncio.gather(purging, return_exceptions=True)

    async def _purge(self) -> None:
        """Delete the records of old messages."""
        while self._purges:
            try:
                before = self._app.queue.now() - self._app.config.server.idempotency_seconds
                await self._app.keys.store.purge(before)
            except Exception as error:
                log.warning("cannot forget old messages now: %s", error)
            await asyncio.sleep(PURGE_SECONDS)


async def redrive_all(config: KafkaConfig, stop: asyncio.Event) -> RepublishResult:
    """Publish the messages in the dead-letter topic to the topics they came from; each once,
    however often this is run. A message that is still invalid comes back."""
    if not config.topics:
        raise ConfigError("say which topics are read: intake.kafka.topics")
    given = options(config)
    publisher, done = Publisher(given), RepublishResult()

    async def again(record: MessageRecord, _: asyncio.Event) -> None:
        topic = await _for_ever(partial(redrive, publisher, record, config.topics))
        if topic is None:
            done.skipped += 1
        else:
            done.redriven += 1
            done.topics[topic] = done.topics.get(topic, 0) + 1

    group = f"{config.group}.redrive"
    reader = TopicReader(given, config, [config.dead_letter_topic], group, again)
    await reader.run(stop, drain=True)
    return done


async def _for_ever(publish: Callable[[], Awaitable[str | None]]) -> str | None:
    while True:
        try:
            return await publish()
        except Unavailable as error:
            log.warning("%s; trying again", error)
            await asyncio.sleep(RETRY_SECONDS)
