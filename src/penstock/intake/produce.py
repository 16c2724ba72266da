"""Publishes uploads that a server has accepted to a topic, whose readers enqueue their jobs.

By then the document and its original are stored, and the message only names them. So a lost or
repeated message does no harm: workers eventually enqueue what nobody has started, and no job exists
twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time

from penstock.errors import ConfigError, Unavailable
from penstock.intake.client import options
from penstock.intake.dead_letters import Publisher
from penstock.model.document import Document
from penstock.model.intake import KafkaConfig
from penstock.model.job import Priority

log = logging.getLogger("penstock.intake")

AWAY_SECONDS = 30.0
"""How long Kafka is not tried again after a failure, because callers wait for it."""


class UploadProducer:
    """Publishes accepted documents; see `Documents.hand_over`."""

    def __init__(self, config: KafkaConfig, *, away_seconds: float = AWAY_SECONDS) -> None:
        if config.produce is None:
            raise ConfigError("say where uploads are passed on to: intake.kafka.produce")
        self._topic = config.produce
        self._publisher = Publisher(options(config))
        self._one_at_a_time = asyncio.Lock()  # else all threads wait while Kafka is away
        self._away_seconds = away_seconds
        self._away_until = 0.0

    async def __call__(self, document: Document, priority: Priority) -> bool:
        """Publish a document; returns whether that worked. If not, the caller has to enqueue its
        job."""
        ref = document.ref
        message = {
            "kind": "ingest",
            "id": ref.id,
            "collection": ref.collection,
            "generation": document.generation,
            "tenant": ref.tenant,
            "priority": priority.name.lower(),
        }
        value = json.dumps(message, ensure_ascii=False).encode()
        # Messages of one document stay in their order.
        key = f"{ref.tenant}/{ref.collection}/{ref.id}".encode()
        async with self._one_at_a_time:
            if time.monotonic() < self._away_until:
                return False
            try:
                await self._publisher.publish(self._topic, key, value, [])
            except Unavailable as error:
                self._away_until = time.monotonic() + self._away_seconds
                log.warning(
                    "uploads go straight to the queue for the next %g s: %s",
                    self._away_seconds,
                    error,
                )
                return False
        return True
