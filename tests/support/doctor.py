"""`penstock doctor` in this process: what it says of a configuration, and how it ends."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.cli import main
from penstock.doctor import documents, models, services
from penstock.doctor import run as examine
from tests.support.waiting import PATIENCE


class Report(NamedTuple):
    code: int
    findings: dict[str, dict[str, str]]
    """By part: the worst that is said of it."""
    text: str

    def says(self, part: str, status: str, *words: str) -> str:
        """What is to be done about a part, once it is as expected."""
        finding = self.findings[part]
        assert finding["status"] == status, finding
        for word in words:
            assert word in f"{finding['found']} | {finding['advice']}", finding
        return finding["advice"]


class Clinic:
    """A folder with a config file, where the doctor is asked."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder = folder
        self._capsys = capsys
        monkeypatch.chdir(folder)
        for name in ("PENSTOCK_QUEUE", "PENSTOCK_CONFIG", "PENSTOCK_DURABLE"):
            monkeypatch.delenv(name, raising=False)
        # A part that is well may answer late on a busy machine.
        monkeypatch.setattr(examine, "run", partial(examine.run, seconds=PATIENCE))
        for part in (documents, models, services):
            monkeypatch.setattr(part, "ANSWER_SECONDS", PATIENCE / 2)

    def config(self, text: str) -> Path:
        path = self.folder / "penstock.yaml"
        path.write_text(text)
        path.chmod(0o600)
        return path

    def ask(self, queue: str | None = None, *options: str) -> Report:
        arguments = ["doctor", "--json", *options]
        arguments += [] if queue is None else ["--queue", queue]
        self._capsys.readouterr()
        code = main(arguments)
        text = self._capsys.readouterr().out
        said = json.loads(text)
        worst = ("skipped", "ok", "warning", "broken")
        findings: dict[str, dict[str, str]] = {}
        for one in sorted(said["findings"], key=lambda one: worst.index(one["status"])):
            findings[one["part"]] = one
        assert (code == 1) == (said["status"] == "broken"), "broken ends with 1, the rest with 0"
        return Report(code, findings, text)
