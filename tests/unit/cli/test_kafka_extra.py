"""Kafka intake where its client is not installed."""

import sys
from pathlib import Path

import pytest

from penstock.cli import main


def test_command_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for name in [name for name in sys.modules if name.startswith("penstock.intake")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["intake", "kafka"]) == 2
    assert "pip install 'penstock[kafka]'" in capsys.readouterr().err
