"""The guide to Kafka is true: its messages can be read, its reasons and headers are complete."""

import json
import re
from pathlib import Path

import pytest

from penstock.intake import dead_letters
from penstock.intake.record import ID_LIMIT, MessageRecord
from penstock.intake.requests import KINDS, read
from penstock.model.intake import KafkaConfig
from tests.docs.run_blocks import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide-kafka.md").read_text()
SOURCE = ROOT / "src" / "penstock" / "intake"
FILES = sorted((ROOT / "examples" / "kafka").glob("*.json"))


def kind_of(text: str) -> str:
    """What a message asks for; fails where it cannot be read."""
    record = MessageRecord("requests", 0, 0, 0, None, text.encode())
    return read(record, list(KINDS), KafkaConfig().message_bytes).kind


def test_messages_of_the_guide_are_of_every_kind_and_can_be_read() -> None:
    messages = [text for language, text, _ in blocks(PAGE) if language == "json" and "kind" in text]
    assert {kind_of(text) for text in messages} == set(KINDS)
    for text in messages:
        fields = set(KINDS[kind_of(text)].model_fields)
        assert fields - set(json.loads(text)) <= {"url"}, "all that it can say is shown"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_message_of_the_examples_can_be_read(file: Path) -> None:
    assert kind_of(file.read_text()) in file.stem


def test_guide_names_every_reason_and_header_and_its_figures() -> None:
    code = "".join(file.read_text() for file in SOURCE.glob("*.py"))
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| `penstock-reason`")]
    told = set(re.findall(r"`([a-z-]+)`", row)) - {"penstock-reason"}
    assert told == set(re.findall(r'Refused\(\s*"([a-z-]+)"', code))
    headers = {
        value
        for value in vars(dead_letters).values()
        if isinstance(value, str) and re.fullmatch(r"penstock-[a-z-]+", value)
    } - {dead_letters.OURS}
    assert headers <= set(re.findall(r"`(penstock-[a-z-]+)`", PAGE))
    assert f"1 to {ID_LIMIT} printable" in " ".join(PAGE.split())
    assert f"`shutdown_seconds` ({KafkaConfig().shutdown_seconds:g})" in PAGE
