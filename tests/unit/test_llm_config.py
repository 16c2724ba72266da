"""The `llm` section, and who reads scans: read exactly, and off unless asked for."""

from pathlib import Path

import pytest

from penstock.config import load
from penstock.model.errors import ConfigError
from penstock.model.llm import LlmConfig

SECTION = """\
llm:
  base_url: http://me:s3cret@localhost:8080/v1
  key_variable: LLM_KEY
  models: {ingest: looker, plan: thinker, search: thinker, answer: writer}
"""


def config(folder: Path, text: str) -> Path:
    path = folder / "penstock.yaml"
    path.write_text(text)
    return path


def test_models_are_read_by_what_they_are_for(tmp_path: Path) -> None:
    loaded = load(file=config(tmp_path, SECTION), environment={})
    assert loaded.llm.models["ingest"] == "looker"
    assert set(loaded.llm.models) == {"ingest", "plan", "search", "answer"}
    assert loaded.llm.key_variable == "LLM_KEY"
    rows = {name: (value, source) for name, value, source in loaded.rows()}
    assert rows["llm.base_url"][0] == "http://me:***@localhost:8080/v1"
    assert rows["llm.models.ingest"] == ("looker", f"{tmp_path}/penstock.yaml line 1")


def test_no_scan_is_read_and_no_model_asked_by_default(tmp_path: Path) -> None:
    assert load(environment={}).llm == LlmConfig()
    loaded = load(file=config(tmp_path, SECTION), environment={})
    assert (loaded.settings.scans, loaded.warnings) == ("none", [])


def test_who_lets_a_model_read_scans_is_told_that_it_gets_them_unmasked(tmp_path: Path) -> None:
    loaded = load(file=config(tmp_path, f"scans: model\n{SECTION}"), environment={})
    (warning,) = loaded.warnings
    assert "as they are: pictures cannot be masked" in warning
    assert "s3cret" not in warning
    ocr = load({"scans": "ocr"}, file=config(tmp_path, SECTION), environment={})
    assert ocr.warnings == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llm: looker", r"line 1: llm must be a mapping"),
        ("llm:\n  url: http://x", r"line 2: llm has no key 'url'; there are: base_url, models"),
        ("llm:\n  base_url: 5", r"line 2: llm: base_url must be a text"),
        ("llm:\n  models: {ingest: looker}", r"line 1: llm: models need base_url"),
        ("llm:\n  base_url: http://x\n  models: [a]", r"line 3: llm: models must be names"),
        ("llm:\n  base_url: http://x\n  models: {ingest: ''}", r"models\.ingest must be a text"),
        ("llm:\n  base_url: http://x\n  models: {draw: a}", r"models has no 'draw'; there are"),
        ("scans: tesseract", r"scans must be one of none, ocr, model"),
        ("scans: off", r"line 1: scans must be a text"),
        ("ocr_languages: -l", r"ocr_languages must be like eng or eng\+jpn"),
        ("ocr_languages: eng+", r"ocr_languages must be like"),
    ],
)
def test_what_is_wrong_is_said_and_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(file=config(tmp_path, text), environment={})
