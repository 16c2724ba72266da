"""The `browser` section of a config file: tabs, and engines."""

from pathlib import Path

import pytest

from penstock import config
from penstock.errors import ConfigError
from penstock.lanes.registry import LaneRegistry
from penstock.model.browser import BrowserConfig, SearchEngineConfig

ENGINE = """\
      url: "https://search.example/?q={query}"
      result: .result
      title: h2
      link: a
"""


def load(folder: Path, text: str) -> config.Config:
    path = folder / "penstock.yaml"
    path.write_text(text)
    return config.load(file=path, environment={})


def test_no_engine_is_asked_unless_configured(tmp_path: Path) -> None:
    loaded = load(tmp_path, "queue: x\n")
    assert loaded.browser == BrowserConfig()
    assert loaded.browser.engines == {}


def test_section_is_read_and_shown(tmp_path: Path) -> None:
    text = f"""\
browser:
  executable: /opt/chromium
  tabs: 2
  engines:
    mine:
{ENGINE}\
      snippet: p
      captcha: ["#captcha", "text=robot"]
      first: 0
      wait_seconds: 1
"""
    loaded = load(tmp_path, text)
    url = "https://search.example/?q={query}"
    assert loaded.browser == BrowserConfig(
        "/opt/chromium",
        tabs=2,
        engines={
            "mine": SearchEngineConfig(
                url,
                ".result",
                "h2",
                "a",
                "p",
                first=0,
                captcha=("#captcha", "text=robot"),
                wait_seconds=1,
            )
        },
    )
    rows = {name: value for name, value, _ in loaded.rows()}
    assert (rows["browser.tabs"], rows["browser.engines.mine.url"]) == (2, url)


@pytest.mark.parametrize(
    ("lanes", "places"),
    [
        ("", 3),
        ("lanes: {browser: {min_interval_seconds: 2}}", 3),
        ("lanes: {browser: {max_parallel: 7}}", 7),
    ],
)
def test_lane_has_a_place_for_each_tab_unless_told_otherwise(
    tmp_path: Path, lanes: str, places: int
) -> None:
    loaded = load(tmp_path, f"browser: {{tabs: 3}}\n{lanes}")
    registry = LaneRegistry(loaded.lanes, {})
    assert registry.config("browser").parallel == places
    engine = registry.config("browser.mine")
    assert (engine.parent, engine.parallel, engine.min_interval_seconds) == ("browser", 1, 1.0)
    assert {name for name, *_ in loaded.rows() if name.startswith("lanes.")} >= {
        "lanes.browser.max_parallel"
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("browser: yes", "line 1: browser must be a mapping"),
        ("browser:\n  tab: 1", "line 2: browser has no key 'tab'; did you mean tabs?"),
        ("browser:\n  tabs: many", "line 2: browser: tabs must be a whole number"),
        ("browser: {tabs: 0}", "tabs must be between 1 and 16, not 0"),
        ("browser: {idle_seconds: 0}", "idle_seconds must be over 0"),
        ("browser: {engines: [x]}", "browser: engines must be a mapping"),
        ("browser: {engines: {x: {url: 'https://e.example/{query}'}}}", "engines.x needs result"),
        (f"browser:\n  engines:\n    A b:\n{ENGINE}", "engine 'A b': a name is of small letters"),
        (f"browser:\n  engines:\n    x:\n{ENGINE}      nxt: a", "line 8: .* did you mean next?"),
        (f"browser:\n  engines:\n    x:\n{ENGINE}      captcha: a", "line 8: .* a list of texts"),
    ],
)
def test_mistake_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"url": "https://e.example/"}, "url must be like"),
        ({"url": "ftp://e.example/{query}"}, "url must be like"),
        ({"url": "https://{query}.example/"}, "url must be like"),
        ({"url": "https://e.example/{query}/{page}", "next": "a"}, "only one of"),
        ({"url": "https://e.example/{query}/{page}/{offset}"}, "only one of"),
        ({"pause_seconds": 0}, "pause_seconds must be over 0"),
    ],
)
def test_engine_that_cannot_be_asked_is_refused(changes: dict[str, object], message: str) -> None:
    settings = {"url": "https://e.example/{query}", "result": "r", "title": "t", "link": "l"}
    with pytest.raises(ConfigError, match=message):
        SearchEngineConfig(**{**settings, **changes})  # type: ignore[arg-type]
