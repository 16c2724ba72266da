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
    """Kafka topics that `penstock intake kafka` consumes, and the one that the server produces
    to."""

    bootstrap: str = ""
    """Bootstrap servers, as comma-separated `host:port`. The environment variable `KAFKA_BOOTSTRAP`
    takes precedence."""
    topics: tuple[str, ...] = ()
    """Topics to consume."""
    group: str = "penstock"
    """Consumer group, whose members share the partitions."""
    dead_letter_topic: str = "penstock.dead-letters"
    """Topic for messages that cannot be processed, with the reason."""
    produce: str | None = None
    """Topic to which the server publishes an `ingest` message for each upload; the intake that
    consumes it enqueues the jobs. By default the server enqueues them itself."""
    buckets: tuple[str, ...] = ()
    """Buckets and prefixes whose objects messages may name as documents: `gs://uploads/lectures`.
    None by default."""
    accept: tuple[str, ...] = ("document", "ingest", "delete", "search")
    """Message kinds to accept. `job`, which can start a job of any kind, has to be named
    explicitly."""
    tenant: str = "default"
    """Tenant that owns everything read from these topics."""
    tenant_header: str | None = None
    """Message header that names the tenant instead, if all producers are trusted to choose it."""
    max_queued: int = 100_000
    """Maximum queued jobs. Consumption pauses while there are more."""
    message_bytes: int = 2_000_000
    """Maximum size of a message. Larger ones become dead letters."""
    shutdown_seconds: float = 25.0
    """Grace period on shutdown for messages that are being stored."""
    options: Mapping[str, Any] = setting(dict, secret=True)
    """librdkafka options, such as `security.protocol: SASL_SSL`. Their values are never shown."""
    option_variables: Mapping[str, str] = field(default_factory=dict)
    """librdkafka options whose values are read from environment variables: `sasl.password:
    KAFKA_PASSWORD`."""

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
