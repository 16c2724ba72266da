"""The `llm` section, and who reads scans: read exactly, and off unless asked for."""

from pathlib import Path

import pytest

from penstock.adapters.models.chat import open_models
from penstock.config import load
from penstock.errors import ConfigError
from penstock.model.answer import Phase
from penstock.model.llm import LlmConfig, ModelConfig, ServedModel

SECTION = """\
llm:
  base_url: http://me:s3cret@localhost:8080/v1
  key_variable: LLM_KEY
  models: {ingest: looker, plan: thinker, search: thinker, answer: writer}
"""
MODELS = "llm:\n  base_url: http://x\n  models:"


def config(folder: Path, text: str) -> Path:
    path = folder / "penstock.yaml"
    path.write_text(text)
    return path


def test_models_are_read_by_what_they_are_for(tmp_path: Path) -> None:
    loaded = load(file=config(tmp_path, SECTION), environment={})
    url = "http://me:s3cret@localhost:8080/v1"
    assert loaded.llm.model("ingest") == ServedModel("looker", url, "LLM_KEY")
    assert loaded.llm.model("search") == ServedModel("thinker", url, "LLM_KEY")
    assert loaded.llm.model("answer") == ServedModel("writer", url, "LLM_KEY")
    rows = {name: (value, source) for name, value, source in loaded.rows()}
    assert rows["llm.base_url"][0] == "http://me:***@localhost:8080/v1"
    assert rows["llm.models.ingest.model"] == ("looker", f"{tmp_path}/penstock.yaml line 4")


def test_one_model_for_answers_is_asked_in_all_their_phases() -> None:
    llm = LlmConfig("http://x/v1", {"answer": ModelConfig("writer")})
    models = open_models(llm)
    assert {phase: (one.name, one.lane) for phase, one in models.items()} == {
        Phase.PLAN: ("writer", "llm.plan"),
        Phase.SEARCH: ("writer", "llm.search"),
        Phase.ANSWER: ("writer", "llm.answer"),
    }
    assert llm.model("ingest") is None
    assert open_models(LlmConfig("http://x/v1", {"ingest": ModelConfig("looker")})) == {}


def test_model_with_a_server_of_its_own_takes_nothing_from_the_section(tmp_path: Path) -> None:
    """Least of all the key, which is for another server."""
    text = """\
llm:
  base_url: https://hosted.example/v1
  key_variable: LLM_KEY
  reasoning: true
  models:
    answer: writer
    plan: {model: planner, reasoning: false}
    search: {model: finder, base_url: "http://localhost:8080/v1"}
"""
    llm = load(file=config(tmp_path, text), environment={}).llm
    hosted = "https://hosted.example/v1"
    assert llm.model("answer") == ServedModel("writer", hosted, "LLM_KEY", reasoning=True)
    assert llm.model("plan") == ServedModel("planner", hosted, "LLM_KEY", reasoning=False)
    assert llm.model("search") == ServedModel("finder", "http://localhost:8080/v1")


def test_environment_alone_is_enough_and_wins_over_the_file(tmp_path: Path) -> None:
    environment = {
        "PENSTOCK_LLM_BASE_URL": "http://env:8080/v1",
        "PENSTOCK_LLM_ANSWER_MODEL": "of-env",
        "PENSTOCK_LLM_PLAN_MODEL": "planner",
        "PENSTOCK_LLM_PLAN_BASE_URL": "https://plans.example/v1",
        "PENSTOCK_LLM_PLAN_KEY_VARIABLE": "PLAN_KEY",
        "PENSTOCK_LLM_PLAN_REASONING": "true",
        "PLAN_KEY": "canary",
    }
    for file in (None, config(tmp_path, SECTION)):
        loaded = load(file=file, environment=environment)
        plan = ServedModel("planner", "https://plans.example/v1", "PLAN_KEY", reasoning=True)
        assert loaded.llm.model("plan") == plan
        answer = loaded.llm.model("answer")
        assert answer is not None
        assert (answer.name, answer.base_url) == ("of-env", "http://env:8080/v1")
        rows = {name: (value, source) for name, value, source in loaded.rows()}
        variable = "environment PENSTOCK_LLM_PLAN_KEY_VARIABLE"
        assert rows["llm.models.plan.key_variable"] == ("PLAN_KEY", variable)
        assert rows["llm.models.answer.model"] == (
            "of-env",
            "environment PENSTOCK_LLM_ANSWER_MODEL",
        )
        assert "canary" not in str(rows)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PLAN_BASE_URL", "http://x", r"PLAN_BASE_URL: llm: models\.plan needs model"),
        ("BASE_URL", "localhost:8080", r"BASE_URL: llm: base_url must be like https://host/path"),
        ("REASONING", "low", r"environment PENSTOCK_LLM_REASONING: llm: reasoning must be true"),
        ("ANSWER_MODEL", "writer", r"ANSWER_MODEL: llm: models need base_url"),
    ],
)
def test_wrong_variable_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(environment={f"PENSTOCK_LLM_{name}": value})


def test_wrong_variable_is_named_also_where_the_file_is_right(tmp_path: Path) -> None:
    environment = {"PENSTOCK_LLM_BASE_URL": "nonsense"}
    with pytest.raises(ConfigError, match=r"^environment PENSTOCK_LLM_BASE_URL: llm: base_url"):
        load(file=config(tmp_path, SECTION), environment=environment)


def test_key_in_place_of_its_variable_is_refused_and_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="names the environment variable") as caught:
        load(file=config(tmp_path, "llm:\n  key_variable: sk-canary"), environment={})
    assert "canary" not in str(caught.value)


def test_no_scan_is_read_and_no_model_asked_by_default(tmp_path: Path) -> None:
    assert load(environment={}).llm == LlmConfig()
    loaded = load(file=config(tmp_path, SECTION), environment={})
    assert (loaded.documents.scans, loaded.warnings) == ("none", [])


def test_who_lets_a_model_read_scans_is_told_that_it_gets_them_unmasked(tmp_path: Path) -> None:
    loaded = load(file=config(tmp_path, f"documents: {{scans: model}}\n{SECTION}"), environment={})
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
        ("llm:\n  base_url: http://x\n  models: [a]", r"line 3: llm: models must be a mapping"),
        (
            "llm:\n  base_url: http://x\n  models: {ingest: ''}",
            r"models\.ingest: model must be a text",
        ),
        ("llm:\n  base_url: http://x\n  models: {draw: a}", r"models has no 'draw'; there are"),
        (f"{MODELS} {{answer: {{name: a}}}}", r"models\.answer has no key 'name'; there are: mod"),
        (
            f"{MODELS} {{answer: {{base_url: http://y}}}}",
            r"line 3: llm: models\.answer needs model",
        ),
        (
            f"{MODELS} {{answer: {{model: a, base_url: y}}}}",
            r"llm: models\.answer: base_url must be like",
        ),
        (f"{MODELS} {{answer: {{}}}}", r"llm: models\.answer needs model"),
        (f"{MODELS} {{plan: a}}", r"line 1: llm: models for plan and search are of no use without"),
        ("documents: {scans: tesseract}", r"scans must be one of none, ocr, model"),
        ("documents: {scans: off}", r"line 1: scans must be one of none, ocr, model, not False"),
        ("documents: {ocr_languages: -l}", r"ocr_languages must be like eng or eng\+jpn"),
        ("documents: {ocr_languages: eng+}", r"ocr_languages must be like"),
    ],
)
def test_what_is_wrong_is_said_and_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(file=config(tmp_path, text), environment={})
