"""Writes the reference pages from what they describe: `python -m tools.reference`.

`tests/docs` checks that the pages in docs/ are what this would write.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import typer

from penstock.cli import cli, main
from penstock.config import DEFAULT_FILE, Config
from penstock.config.setting_names import PLAIN, TOP
from penstock.model.lane import BUILT_IN, LEAST_TOLERANCE, PROFILES, SPARE, LaneConfig
from penstock.model.providers import ADDRESSES
from penstock.model.section import keys, types
from tools.reference_api import api_page, metrics_page
from tools.reference_mcp import mcp_page
from tools.reference_tree import architecture_page

DOCS = Path(__file__).parents[1] / "docs"

SETTINGS = """\
# Settings

<!-- Written by `python -m tools.reference` from src/penstock/config/settings.py. -->

Settings of the first table, and of sections marked *by name*, can be given in three places. The
first that names one wins:

1. as an argument: `Penstock("sqlite:///jobs.db", max_workers=4)`;
2. in the environment: `PENSTOCK_MAX_WORKERS=4`;
3. in `{file}`, in its section: `engine: {{max_workers: 4}}`.

Other sections are read from `{file}` alone, unless they say otherwise. A list is a list in
`{file}` (`[a, b]`), a text with commas in the environment (`a,b`), and either as an argument.

`{file}` is looked for in the current folder. `PENSTOCK_CONFIG`, `--config` or
`Penstock(config_file=...)` name another file. An unknown name, a wrong value or a setting in the
wrong section is a `ConfigError` that says where it was found, and what to write. Of variables, only
what is nearly the name of a setting is refused (`PENSTOCK_MAXWORKERS`): others may start with
`PENSTOCK_` for reasons of their own. `penstock config` shows every value and where it came from.

All times are in seconds.

| setting | default | meaning |
|---|---|---|
{top}

Two sections are mappings by names of your own, and also arguments of `Penstock`: `lanes`
([reference](reference-lanes.md)) and `tenant_weights`
([guide](guide-lanes.md#fairness-and-priorities)).
{sections}"""

_SERVER = ", ".join(f"`{key}`" for key, path in PLAIN.items() if path[0] == "server")
BY_NAME = "*By name.*"
SECTION_NOTES = {
    "engine": BY_NAME,
    "documents": f"{BY_NAME} How documents are used is in the [guide](guide-documents.md).",
    "research": f"{BY_NAME} How research is used is in the [guide](guide-research.md).",
    "answers": f"{BY_NAME} How answers are used is in the [guide](guide-answers.md).",
    "outbound": BY_NAME,
    "logging": f"{BY_NAME} More in the [guide](guide-telemetry.md#logs).",
    "server": f"`penstock serve --host` and `--port` win over it. By name: {_SERVER}. How it is "
    "used is in the [guide](guide-server.md).",
    "embedder": "How it is used is in the [guide](guide-documents.md#settings).",
    "names": "Without this section names are not masked. More in the "
    "[guide](guide-documents.md#masking-of-names).",
    "llm": "In the environment `PENSTOCK_LLM_BASE_URL` and the like, which win; of a role "
    "`PENSTOCK_LLM_PLAN_MODEL` and the like. How models are used is in the "
    "[guide](guide-models.md).",
    "llm.models": "By role: `ingest`, `plan`, `search`, `answer`. A name alone is its `model`. "
    "Where `plan` or `search` has none, that of `answer` is used.",
    "providers": f"By the name of a provider: {', '.join(f'`{name}`' for name in ADDRESSES)}.",
    "browser": "What it is for, and an example, is in the "
    "[guide](guide-providers.md#search-engines-in-a-browser).",
    "browser.engines": "By a name of yours: engine `x` is the provider `browser.x`, in the lane "
    "`browser.x`.",
    "librarian": "`penstock librarian --host` and `--port` win over it. How it is used is in the "
    "[guide](guide-librarian.md).",
    "intake.kafka": "How it is used is in the [guide](guide-kafka.md).",
}
"""What the page says of a section besides the first line of its docstring."""

LANES = """\
# Lanes

<!-- Written by `python -m tools.reference` from src/penstock/model/lane.py. -->

What each key of a lane means, and the lanes that are there without any configuration. How to use
them is in the [guide](guide-lanes.md).

## Keys

In `{file}` under `lanes:` and the lane's name, in code in `Penstock(lanes={{...}})`. An unknown
key or a wrong value is a `ConfigError`, which for a file names the line. What is given for a
built-in lane changes only the keys that are given. All times are in seconds.

| key | default | meaning |
|---|---|---|
{keys}

## Starts are spaced

Starts in a lane are allowed this far apart: `interval_seconds / requests_per_interval` or
`min_interval_seconds`, whichever is longer, and {spare} more, because spacing of exactly a tenth
of a second lets eleven starts into some windows of one second. If neither is given it is
{unknown} s, and {spare} more. While a lane is slowed down after repeated 429 it is a multiple of
that. A start that is late by more than {late:g} ms (or 1% of the window, if that is more) is given
up and asked for again.

## Built-in lanes

The column "apart" is the spacing that follows. A name with `*` is a pattern: each name that matches
is a lane of its own, with these limits. Where several patterns match, the longest is taken.

| lane | rate | apart | at a time | timeout | parent |
|---|---|---|---|---|---|
{built_in}

A lane that nobody configured and no pattern matches gets a start every {unknown} s, {parallel} at
a time, and a warning in the log, once in each process.
"""

KEYS = {
    "requests_per_interval": "At most this many starts in any window of `interval_seconds`.",
    "interval_seconds": "The window of `requests_per_interval`; the two go together.",
    "min_interval_seconds": "Two starts are at least this far apart, whatever the rate allows. "
    "0, and no rate: as fast as they come.",
    "max_parallel": "Requests (or running jobs) at a time.",
    "requests_per_day": "Starts in a day, by UTC.",
    "timeout_seconds": "A run of a job in this lane ends after this, or after the job's own "
    "timeout, whichever is shorter.",
    "breaker_first_seconds": "While the breaker is open, the first try waits this long; each "
    "further one twice as long as the one before.",
    "breaker_cap_seconds": "But no longer than this. Each wait is shortened by up to a fifth, at "
    "random.",
    "health_url": "What the probe asks while the lane is in trouble: `http://...` or "
    "`https://...` (anything but a 5xx is good), or `host:port` (a connection is good). Without "
    "it, the host and port that `ctx.http` last could not reach.",
    "probe_seconds": "How often the probe asks, at most.",
    "parent": "Another lane, whose limits hold for all its children together. It must be "
    "configured, and have no parent itself.",
    "credentials": "Requests carry a key: when three jobs in a row are refused (401, 403), the "
    "lane is blocked until a person resumes it or a process starts with a new key. False where "
    "a refusal says nothing of a key.",
}
"""What each field of LaneConfig means to whoever writes it."""

PROFILES_KEY = (
    "Changes by credential: `{environment variable: {key: value}}`. Those whose variable is set "
    "are applied, in the order given."
)

COMMANDS = """\
# Command line

<!-- Written by `python -m tools.reference` from what `--help` says. -->
"""


def settings_page() -> str:
    return SETTINGS.format(
        file=DEFAULT_FILE,
        top="\n".join(_rows(Config, TOP)),
        sections="".join(
            _section(name, kind)
            for name, kind in types(Config).items()
            if name in keys(Config) and name not in (*TOP, "lanes", "tenant_weights")
        ),
    )


def _section(name: str, kind: Any) -> str:
    """The heading, what the section is, its settings, and the sections inside it."""
    arguments = [one for one in get_args(kind) if is_dataclass(one)]
    section = arguments[0] if arguments else kind
    inner = {
        key: one
        for key, one in types(section).items()
        if key in keys(section) and is_dataclass(get_args(one)[-1] if get_args(one) else one)
    }
    text = "".join(_section(f"{name}.{key}", one) for key, one in inner.items())
    rows = [key for key in keys(section) if key not in inner]
    if not rows:
        return text
    about = " ".join((section.__doc__ or "").split())
    note = SECTION_NOTES.get(name)
    words = "\n\n".join(filter(None, (about, note)))
    table = "\n".join(("| setting | default | meaning |", "|---|---|---|", *_rows(section, rows)))
    return f"\n## {name}\n\n{words}\n\n{table}\n{text}"


def _rows(of: Any, names: Collection[str]) -> list[str]:
    meanings = _meanings(of)
    return [f"| `{name}` | {_shown(keys(of)[name].default)} | {meanings[name]} |" for name in names]


def _shown(default: Any) -> str:
    return "none" if default in (None, "", (), MISSING) else f"`{_value(default)}`"


def _meanings(of: type) -> dict[str, str]:
    """The text under each field; fields without one share that of the field after them."""
    body = ast.parse(inspect.getsource(of)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    untold: list[str] = []
    for node in body.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                untold.append(name)
            case ast.Expr(value=ast.Constant(value=str() as text)):
                found |= dict.fromkeys(untold, " ".join(text.split()))
                untold.clear()
    return found


def _value(default: Any) -> str:
    match default:
        case bool():
            return str(default).lower()
        case float():
            return f"{default:.10g}"
        case tuple():
            return str(list(default))
        case _:
            return str(default)


def lanes_page() -> str:
    default = LaneConfig()
    unknown = {"min_interval_seconds": f"{default.spacing / SPARE:g} without a rate, else 0"}
    unknown["max_parallel"] = str(default.parallel)
    keys = []
    for field in fields(LaneConfig):
        if field.name not in KEYS:
            continue
        value = unknown.get(field.name) or f"`{_value(field.default)}`"
        shown = "none" if field.default is None and field.name not in unknown else value
        keys.append(f"| `{field.name}` | {shown} | {KEYS[field.name]} |")
    keys.append(f"| `{PROFILES}` | none | {PROFILES_KEY} |")
    return LANES.format(
        file=DEFAULT_FILE,
        keys="\n".join(keys),
        built_in="\n".join(_lane_row(name, lane) for name, lane in BUILT_IN.items()),
        spare=f"{SPARE - 1:.0%}",
        unknown=f"{default.spacing / SPARE:g}",
        late=1000 * LEAST_TOLERANCE,
        parallel=default.parallel,
    )


def _lane_row(name: str, lane: LaneConfig) -> str:
    per, window = lane.requests_per_interval, lane.interval_seconds
    cells = [
        f"`{name}`",
        f"{per} in {window:g} s" if per and window else "",
        f"{lane.spacing:.4g} s" if lane.spacing else "not spaced",
        str(lane.parallel),
        f"{lane.timeout_seconds:g} s" if lane.timeout_seconds else "",
        f"`{lane.parent}`" if lane.parent else "",
    ]
    return f"| {' | '.join(cells)} |"


def commands_page() -> str:
    parts = [COMMANDS]
    for path in _commands(typer.main.get_command(cli), []):
        title = " ".join(["penstock", *path])
        parts.append(f"## {title}\n\n```text\n{_help(path)}\n```\n")
    return "\n".join(parts)


def _commands(command: Any, path: list[str]) -> Iterator[list[str]]:
    yield path
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    for name, sub in inner.items():
        yield from _commands(sub, [*path, name])


def _help(path: list[str]) -> str:
    text = io.StringIO()
    with patch.dict(os.environ, COLUMNS="90"), contextlib.redirect_stdout(text):
        code = main([*path, "--help"])
    assert code == 0, path
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())


PAGES = {
    "reference-settings.md": settings_page,
    "reference-lanes.md": lanes_page,
    "reference-cli.md": commands_page,
    "reference-api.md": api_page,
    "reference-metrics.md": metrics_page,
    "reference-mcp.md": mcp_page,
    "architecture.md": architecture_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        sys.stdout.write(f"docs/{name}\n")
