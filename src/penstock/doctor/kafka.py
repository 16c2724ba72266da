"""Checks the Kafka intake."""

from __future__ import annotations

from penstock.doctor.context import Case, in_thread
from penstock.doctor.diagnosis import Diagnosis, broken, ok, skipped, warning
from penstock.errors import ConfigError
from penstock.model.intake import KafkaConfig

PART = "kafka"
ANSWER_SECONDS = 5.0


async def look(case: Case) -> list[Diagnosis]:
    config = case.config.intake.kafka
    if not config.bootstrap and not config.topics:
        return [skipped(PART, "no requests are taken in from it")]
    try:
        return await in_thread(_look, config)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("penstock"):
            raise
        return [skipped(PART, "its library is not installed", "see extras")]


def _look(config: KafkaConfig) -> list[Diagnosis]:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from penstock.intake.client import for_others, made, options, reason

    try:
        admin = made(AdminClient, for_others(options(config)))
    except ConfigError as error:
        return [broken(PART, str(error), "correct the section intake.kafka")]
    try:
        found = admin.list_topics(timeout=ANSWER_SECONDS)
    except KafkaException as error:
        said = f"{config.bootstrap} does not answer ({reason(error)})"
        return [broken(PART, said, "start it, or correct bootstrap and options")]
    produced = [] if config.produce is None else [config.produce]
    there = {name for name, topic in found.topics.items() if topic.error is None}
    if not config.topics and not produced:
        return [broken(PART, "no topic is named to read", "set intake.kafka.topics")]
    if missing := [name for name in (*config.topics, *produced) if name not in there]:
        said = f"there is no topic {', '.join(missing)}"
        return [broken(PART, said, "make it, or correct intake.kafka.topics and produce")]
    if config.dead_letter_topic not in there:
        # A broker may make it by itself with the first dead letter, or refuse.
        said = f"there is no topic {config.dead_letter_topic} for what cannot be carried out"
        return [warning(PART, said, "make it: without it one such message holds up its partition")]
    used = [f"reads {', '.join(config.topics)}"] * bool(config.topics)
    used += [f"passes uploads on to {config.produce}"] * bool(produced)
    return [ok(PART, f"{len(found.brokers)} brokers, {', '.join(used)}")]
