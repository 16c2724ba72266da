"""Connects to Kafka: options of its clients, ids of its topics."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from penstock.errors import ConfigError, Unavailable
from penstock.intake.record import MessageRecord
from penstock.model.intake import KafkaConfig

log = logging.getLogger("penstock.intake")

ASK_SECONDS = 10.0
SAY_SECONDS = 60.0
"""Minimum interval between two log lines about the same problem, which recurs 20 times a second."""
NO_ID = str(Uuid(0, 0))
"""Topic id that brokers before 2.8 return for every topic."""
NO_IDS = (KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE)

VALUE = re.compile(r'value ".*" for', re.DOTALL)
"""Matches the value that a client quotes when it rejects an option; it may be a secret."""
CONSUMERS_ONLY = (
    "check.",
    "fetch.",
    "group.",
    "heartbeat.",
    "isolation.",
    "max.poll.",
    "queued.",
    "session.",
)
"""Prefixes of options that only consumers accept."""
ASKED_FOR = ("error_cb", "logger")
"""Callbacks that are called when a client is polled."""


def options(config: KafkaConfig) -> dict[str, Any]:
    """Build the options common to all clients. Raises ConfigError if something is missing."""
    if not config.bootstrap:
        raise ConfigError("say where Kafka is: intake.kafka.bootstrap, or KAFKA_BOOTSTRAP")
    # Level 3 would say what the trouble says, once for each try.
    given: dict[str, Any] = {"log_level": "2"}
    for option, value in config.options.items():
        given[option] = str(value).lower() if isinstance(value, bool) else str(value)
    given["bootstrap.servers"] = config.bootstrap
    for option, variable in config.option_variables.items():
        value = os.environ.get(variable, "")
        if not value:
            raise ConfigError(f"set {variable} to the value of Kafka's option {option}")
        given[option] = value
    return given | {"error_cb": ClientTrouble(), "logger": log}


def made(client: Any, given: dict[str, Any]) -> Any:
    """Create a Kafka client; raises ConfigError if its options are wrong."""
    try:
        return client(given)
    except KafkaException as error:
        said = VALUE.sub("value for", reason(error))
        raise ConfigError(f"Kafka's client cannot be set up: {said}") from None


def for_others(given: dict[str, Any]) -> dict[str, Any]:
    """Adapt the options for clients that are not consumers. Nobody polls them, so their events
    would pile up; errors come with the replies to their calls."""
    kept = {name: value for name, value in given.items() if not name.startswith(CONSUMERS_ONLY)}
    return {name: kept[name] for name in kept if name not in ASKED_FOR} | {"log_level": "0"}


def reason(error: KafkaException) -> str:
    found = error.args[0]
    return str(found.str()) if isinstance(found, KafkaError) else str(found)


class ClientTrouble:
    """Logs problems that the client recovers from: each kind once a minute."""

    def __init__(self) -> None:
        self._said: dict[int, float] = {}

    def __call__(self, error: KafkaError) -> None:
        now = time.monotonic()
        if now - self._said.get(error.code(), -SAY_SECONDS) >= SAY_SECONDS:
            self._said[error.code()] = now
            log.warning("Kafka: %s", error.str())


class Topics:
    """Topic ids by name. A topic that was deleted and created again is another one."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._admin: AdminClient = made(AdminClient, for_others(given))
        self._origins: dict[tuple[str, int], tuple[str, int]] = {}
        """By topic and partition: the origin, and the last offset it was looked up for."""

    def forget(self, topic: str, partition: int) -> None:
        """Look the origin up again with the next message: it may come from anywhere."""
        self._origins.pop((topic, partition), None)

    async def origin(self, record: MessageRecord) -> str:
        """Return the ids of cluster and topic. Looked up again when offsets go back."""
        place = (record.topic, record.partition)
        origin, last = self._origins.get(place, ("", -1))
        if not origin or record.offset < last:
            origin = await asyncio.to_thread(self._ask, record.topic)
        self._origins[place] = (origin, record.offset)
        return origin

    def _ask(self, topic: str) -> str:
        """Look up the ids: always the same result, or Unavailable. An identity that changes would
        make a message look like another."""
        try:
            cluster = self._admin.list_topics(topic, timeout=ASK_SECONDS).cluster_id
            return f"{cluster}/{self._id_of(topic) or topic}"
        except KafkaException as error:
            raise Unavailable(f"Kafka does not tell what {topic} is: {reason(error)}") from None
        except TimeoutError:
            raise Unavailable(f"Kafka does not tell what {topic} is") from None

    def _id_of(self, topic: str) -> str | None:
        asked = self._admin.describe_topics(TopicCollection([topic]), request_timeout=ASK_SECONDS)
        try:
            found = str(asked[topic].result(ASK_SECONDS * 2).topic_id)
        except KafkaException as error:
            if error.args[0].code() in NO_IDS:
                return None
            raise
        return None if found == NO_ID else found
