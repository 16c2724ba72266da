"""The doctor and Kafka, broken in turn."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.doctor import services
from tests.support.database_servers import free_port
from tests.support.doctor import Clinic
from tests.support.kafka import Cluster

PASSWORD = "sesame-and-nothing-else"


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


def configure(clinic: Clinic, bootstrap: str, *topics: str, **settings: Any) -> Path:
    given = {"bootstrap": bootstrap, "topics": topics, **settings}
    return clinic.config(json.dumps({"intake": {"kafka": given}}))


def test_kafka_that_is_not_configured_is_passed_over(clinic: Clinic) -> None:
    clinic.ask().says("kafka", "skipped", "no requests")


def test_kafka_with_its_topics_is_well(clinic: Clinic, cluster: Cluster) -> None:
    topic = cluster.topic()
    configure(clinic, cluster.bootstrap, topic, dead_letter_topic=f"{topic}.dead")
    clinic.ask().says("kafka", "ok", "brokers", topic)


def test_brokers_that_do_not_answer_are_broken(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a password in a file that everybody can read is worth a warning."""
    monkeypatch.setattr(services, "ANSWER_SECONDS", 0.5)
    options = {"sasl.password": PASSWORD}
    configure(clinic, f"127.0.0.1:{free_port()}", "requests", options=options).chmod(0o644)
    report = clinic.ask()
    report.says("kafka", "broken", "does not answer", "start it")
    report.says("config", "warning", "holds a password", "chmod 640")
    assert PASSWORD not in report.text


def test_a_topic_that_is_not_there_is_broken(clinic: Clinic, cluster: Cluster) -> None:
    configure(clinic, cluster.bootstrap, "no-such-topic")
    clinic.ask().says("kafka", "broken", "there is no topic no-such-topic", "intake.kafka.topics")
    configure(clinic, cluster.bootstrap)
    clinic.ask().says("kafka", "broken", "no topic is named")


def test_a_missing_dead_letter_topic_is_worth_a_warning(clinic: Clinic, cluster: Cluster) -> None:
    configure(clinic, cluster.bootstrap, cluster.topic(), dead_letter_topic="nowhere")
    clinic.ask().says("kafka", "warning", "there is no topic nowhere", "holds up its partition")


def test_options_that_are_wrong_are_broken(
    clinic: Clinic, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(clinic, cluster.bootstrap, "requests", options={"no.such.option": "1"})
    clinic.ask().says("kafka", "broken", "no.such.option", "section intake.kafka")
    monkeypatch.delenv("TOY_PASSWORD", raising=False)
    variables = {"sasl.password": "TOY_PASSWORD"}
    configure(clinic, cluster.bootstrap, "requests", option_variables=variables)
    clinic.ask().says("kafka", "broken", "set TOY_PASSWORD")
