"""Configuration of the Kafka intake, in both directions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import ConfigError
from penstock.model.section import OVER_ZERO, check_fields, setting

REQUESTS = ("document", "ingest", "delete", "search", "job")
"""What a message can ask for."""
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka allows; a pattern (`^...`) would also take in what nobody has named."""
OURS = (
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "group.id",
    "group.protocol",
    "partition.assignment.strategy",
)
"""Options that what is promised depends on."""


@dataclass(slots=True, frozen=True)
class KafkaConfig:
    """Messages of Kafka, read by `penstock intake kafka`, and written by the server."""

    bootstrap: str = ""
    """`host:port` of a broker, several with commas between. `KAFKA_BOOTSTRAP` in the environment
    wins."""
    topics: tuple[str, ...] = ()
    """What is read."""
    group: str = "penstock"
    """The consumer group: its members share the partitions."""
    dead_letter_topic: str = "penstock.dead-letters"
    """Where messages go that cannot be carried out, with the reason."""
    produce: str | None = None
    """The topic that the server passes uploads on to, as messages of the kind `ingest`; who reads
    it enqueues their jobs. Unless set, the server does so itself."""
    buckets: tuple[str, ...] = ()
    """Buckets whose objects messages may name as documents, each with the prefix that their names
    begin with: `gs://uploads/lectures`. None unless named."""
    accept: tuple[str, ...] = ("document", "ingest", "delete", "search")
    """What messages may ask for. `job`, which starts jobs of any kind, is not among them unless
    named here."""
    tenant: str = "default"
    """Whose all of it is."""
    tenant_header: str | None = None
    """The header that names a message's tenant instead, where who writes to the topics may say."""
    max_queued: int = 100_000
    """With more jobs queued than this, messages wait in Kafka."""
    message_bytes: int = 2_000_000
    """A larger message is a dead letter."""
    shutdown_seconds: float = 25.0
    """How long a stop waits for messages that are being stored."""
    options: Mapping[str, Any] = setting(dict, secret=True)
    """Options of librdkafka, such as `security.protocol: SASL_SSL`. Their values are never
    shown."""
    option_variables: Mapping[str, str] = field(default_factory=dict)
    """Options whose values are in the environment: `sasl.password: KAFKA_PASSWORD`."""

    def __post_init__(self) -> None:
        check_fields(self, least=OVER_ZERO)
        produced = [] if self.produce is None else [self.produce]
        for topic in (*self.topics, self.dead_letter_topic, *produced):
            if not TOPIC.fullmatch(topic):
                raise ConfigError(f"{topic!r} is not the name of a topic")
        if self.dead_letter_topic in (*self.topics, *produced):
            raise ConfigError("dead_letter_topic must be neither one of topics nor produce")
        if self.produce in self.topics and "ingest" not in self.accept:
            raise ConfigError("accept must name ingest where the topic of produce is read")
        if not self.group or not self.tenant:
            raise ConfigError("group and tenant must not be empty")
        for request in self.accept:
            if request not in REQUESTS:
                raise ConfigError(
                    f"accept: there is no {request!r}; there are: {', '.join(REQUESTS)}",
                    setting="accept",
                )
        for option in (*self.options, *self.option_variables):
            if option in OURS:
                raise ConfigError(f"the option {option} is not to be changed")


@dataclass(slots=True, frozen=True)
class IntakeConfig:
    """The section `intake`: where work comes from, besides callers of the API."""

    kafka: KafkaConfig = field(default_factory=KafkaConfig)
    """Messages of Kafka."""
