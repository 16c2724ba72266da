"""The dashboard and the alerts ask for metrics that there are."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tools.grafana import FILE, text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference-metrics.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", PAGE, re.MULTILINE)
LABELS = {
    name + end: {*re.findall(r"\w+", labels), *(["le"] if end == "_bucket" else [])}
    for name, kind, labels in ROWS
    for end in (("_bucket", "_count", "_sum") if kind == "histogram" else ("",))
}
"""The labels of everything that can be asked for."""
ALERTS = yaml.safe_load((ROOT / "deploy" / "alerts.yaml").read_text())


def check(expression: str) -> None:
    asked = re.findall(r"(penstock_\w+)(?:\{([^}]*)\})?", expression)
    assert asked, expression
    for name, where in asked:
        assert name in LABELS, f"{name}: {expression}"
        for label in re.findall(r"(\w+)\s*=", where):
            assert label in LABELS[name], f"{label} of {name}: {expression}"
    assert expression.count("(") == expression.count(")"), expression
    known = set().union(*(LABELS[name] for name, _ in asked))
    # The outermost: what a legend or an alert can name.
    if outer := re.match(r"\w+ by \(([^)]*)\)", expression.removeprefix("histogram_quantile(")):
        assert set(outer[1].replace(" ", "").split(",")) <= known, expression


def test_dashboard_is_what_its_tool_writes() -> None:
    assert FILE.read_text() == text()


def test_dashboard_asks_for_metrics_that_there_are() -> None:
    board: dict[str, Any] = json.loads(FILE.read_text())
    graphs = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(graphs) >= 20
    for panel in graphs:
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            check(target["expr"].replace("[$__rate_interval]", "[5m]"))
    assert [one["type"] for one in board["templating"]["list"]] == ["datasource"]


def test_no_panel_of_the_dashboard_covers_another() -> None:
    board = json.loads(FILE.read_text())
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)
    assert len({panel["id"] for panel in board["panels"]}) == len(places)


def test_alerts_ask_for_metrics_that_there_are_and_the_guide_tells_of_each() -> None:
    [group] = ALERTS["groups"]
    guide = (ROOT / "docs" / "guide-telemetry.md").read_text()
    for rule in group["rules"]:
        check(rule["expr"])
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert f"`{rule['alert']}`" in guide
        named = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
        by = re.findall(r"by \(([^)]*)\)", rule["expr"])
        assert all(name in by[0] for name in named), rule["alert"]
