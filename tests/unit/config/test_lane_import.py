"""Rate limits of an academic_apis.yaml, as lanes."""

import json
from pathlib import Path

import pytest
import yaml

from penstock.cli import main
from penstock.config import load
from penstock.errors import ConfigError
from penstock.lanes.registry import LaneRegistry
from penstock.model.lane import BUILT_IN

FILE = """\
apis:
  semantic_scholar:
    rate_limit:
      requests_per_interval: 100
      interval_seconds: 300  # 100 req/5min = 0.33 req/s
      min_interval_seconds: 3.0  # Conservative (override; else from requests/interval)
      max_parallel: 1            # Provider-level concurrency cap (global)

  openalex:
    rate_limit:
      requests_per_interval: 10
      interval_seconds: 1  # 10 req/s (polite pool)
      min_interval_seconds: 0.1
      max_parallel: 2
"""
OTHERS = """\
apis:
  daily:
    base_url: https://example.org
    rate_limit: {requests_per_day: 500, max_parallel: 1, burst: 3}
  faster: {rate_limit: {requests_per_interval: 1, interval_seconds: 2, min_interval_seconds: 0.5}}
  free: {enabled: true}
  free_too: {rate_limit: {max_parallel: null}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "academic_apis.yaml"
    path.write_text(FILE)
    return path


def test_what_is_printed_is_the_same_limits_as_lanes(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lanes", "import", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    (tmp_path / "penstock.yaml").write_text(printed.out)
    lanes = load(file=tmp_path / "penstock.yaml", environment={}).lanes
    assert lanes == {name: api["rate_limit"] for name, api in yaml.safe_load(FILE)["apis"].items()}
    registry = LaneRegistry(lanes)
    for name in lanes:
        assert registry.config(name) == BUILT_IN[name]


def test_it_is_written_to_a_new_file_only(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "lanes.yaml"
    command = ["lanes", "import", str(file), "--output", str(output), "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["lanes"] == load(file=output, environment={}).lanes
    (tmp_path / "penstock.yaml").write_text("lanes: lanes.yaml")
    assert told["lanes"] == load(file=tmp_path / "penstock.yaml", environment={}).lanes
    written = output.read_text()
    assert main(command) == 2
    assert "already exists" in capsys.readouterr().err
    assert output.read_text() == written


def test_what_is_no_limit_and_what_means_something_else_is_said(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(OTHERS)
    assert main(["lanes", "import", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["lanes"]["daily"] == {"max_parallel": 1, "requests_per_day": 500}
    assert set(told["lanes"]) == {"daily", "faster"}
    assert told["left_out"] == ["daily.base_url", "free.enabled"]
    assert told["unknown_limits"] == ["daily.rate_limit.burst"]
    assert told["notes"] == [
        "faster: min_interval_seconds does not override the rate of a lane: starts are 2 s apart, "
        "not 0.5",
        "free has no limits, so no lane is made of it",
        "free_too has no limits, so no lane is made of it",
    ]
    assert main(["lanes", "import", str(file)]) == 0
    said = capsys.readouterr().err
    assert "skipped, not a limit: daily.base_url" in said
    assert "skipped, not supported by lanes: daily.rate_limit.burst; supported:" in said


def test_a_file_of_lanes_may_have_one_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("lanes: lanes.yaml")
    (tmp_path / "lanes.yaml").write_text("lanes: {max_parallel: 3}")
    lanes = load(file=tmp_path / "penstock.yaml", environment={}).lanes
    assert lanes == {"lanes": {"max_parallel": 3}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lanes: {}", "has no `apis`"),
        ("apis: [openalex]", "has no `apis`"),
        ("apis: {openalex: {}}", "has no limits under `rate_limit`"),
        (
            "apis:\n  a: {rate_limit: {max_parallel: 2}}\n  b:\n    rate_limit:\n      requests: 3",
            "line 5: b: lanes have no limit 'requests'; there are: requests_per_interval",
        ),
        ("apis:\n  openalex: 3", "line 2: openalex must be a mapping"),
        ("apis:\n  a:\n    rate_limit: 3", "line 3: a: rate_limit must be a mapping"),
        ("apis:\n  a:\n    rate_limit:\n      max_parallel: two", "line 4: a: max_parallel must"),
        ("apis:\n  a:\n    rate_limit: {interval_seconds: 2}", "line 3: a: requests_per_interval"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    file: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert main(["lanes", "import", str(file)]) == 2
    assert said in capsys.readouterr().err


def test_such_a_file_given_as_settings_or_as_lanes_says_how_to_convert_it(
    file: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "penstock.yaml"
    settings.write_text(f"lanes: {file.name}\n")
    for given in (file, settings):
        with pytest.raises(ConfigError) as told:
            load(file=given, environment={})
        assert "academic_apis.yaml line 1: `apis` are rate limits" in str(told.value)
        assert f"`penstock lanes import {file}`" in str(told.value)
