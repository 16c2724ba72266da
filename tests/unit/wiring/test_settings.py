"""The settings of an app: the same whether the reader of files and variables is loaded or not."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.config import load
from penstock.errors import ConfigError


@pytest.fixture(autouse=True)
def nothing_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("PENSTOCK_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"queue": "sqlite:///other.db", "max_workers": 3, "durable": False},
        {"grace_seconds": 3, "contact": "mail@example.org"},
        {"queue": "sqlite:///other.db", "documents": None, "port": None},
    ],
)
def test_arguments_mean_the_same_with_and_without_the_reader(arguments: dict[str, Any]) -> None:
    app, read = Penstock(**arguments), load(arguments)

    assert app._settings.engine == read.engine
    assert app._settings.queue == read.queue
    assert app.config == read


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_workers": 0}, "argument: max_workers must be a number from 1 up, not 0"),
        ({"max_workers": "many"}, "argument: max_workers must be a whole number, not 'many'"),
        ({"max_worker": 3}, "argument: unknown setting 'max_worker'; did you mean max_workers?"),
        ({"queue": ""}, "argument: queue must be a text, not ''"),
    ],
)
def test_wrong_argument_is_refused_as_the_reader_does(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Penstock(**arguments)

    assert str(refused.value) == message


def test_file_and_variables_count_as_soon_as_there_are_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("penstock.yaml").write_text("engine: {max_workers: 7}\n")
    assert Penstock()._settings.engine.max_workers == 7

    monkeypatch.setenv("PENSTOCK_MAX_WORKERS", "8")
    assert Penstock()._settings.engine.max_workers == 8
    assert Penstock(max_workers=9)._settings.engine.max_workers == 9


def test_settings_are_those_of_the_start_whatever_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Penstock(max_workers=3)
    Path("penstock.yaml").write_text("server: {port: 1}\n")
    monkeypatch.setenv("PENSTOCK_MAX_WORKERS", "8")

    assert (app.config.engine.max_workers, app.config.server.port) == (3, 8321)


def test_reader_is_not_loaded_for_settings_of_the_engine() -> None:
    program = "import sys, penstock; penstock.Penstock('sqlite:///a.db', max_workers=2); "
    loaded = "print([name for name in sys.modules if name.startswith('penstock.config')])"
    done = subprocess.run(
        [sys.executable, "-c", program + loaded], capture_output=True, text=True, timeout=120
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")
