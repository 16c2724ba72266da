"""Generates the reference pages from the code: `python -m tools.reference`.

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
from typing import Any, get_args, get_origin
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

There are three ways to set the settings of the first table and of the sections marked *all
sources*, in order of precedence:

1. an argument: `Penstock("sqlite:///jobs.db", max_workers=4)`;
2. an environment variable: `PENSTOCK_MAX_WORKERS=4`;
3. `{file}`, in the section: `engine: {{max_workers: 4}}`.

Arguments and variables use the name of the setting without its section. The other sections are read
from `{file}` only, unless noted otherwise. A list is a YAML list in `{file}` (`[a, b]`), separated
by commas in the environment (`a,b`), and either as an argument.

`{file}` is read from the current directory; `PENSTOCK_CONFIG`, `--config` or
`Penstock(config_file=...)` name another file. An unknown name, an invalid value or a setting in the
wrong section raises a `ConfigError` that says where it was found and what to write. Unknown
environment variables are ignored, because other programs set variables that start with `PENSTOCK_`
too, unless the name is almost that of a setting (`PENSTOCK_MAXWORKERS`). `penstock config` shows
every value and its source.

All times are in seconds.

| setting | default | meaning |
|---|---|---|
{top}

`lanes` ([reference](reference-lanes.md)) and `tenant_weights`
([guide](guide-lanes.md#fairness-and-priorities)) are mappings whose keys you choose. They can also
be passed as arguments to `Penstock`.
{sections}"""

_SERVER = ", ".join(f"`{key}`" for key, path in PLAIN.items() if path[0] == "server")
ALL_SOURCES = "*All sources.*"
SECTION_NOTES = {
    "engine": ALL_SOURCES,
    "documents": f"{ALL_SOURCES} Guide: [documents](guide-documents.md).",
    "research": f"{ALL_SOURCES} Guide: [research](guide-research.md).",
    "answers": f"{ALL_SOURCES} Guide: [answers](guide-answers.md).",
    "outbound": ALL_SOURCES,
    "logging": f"{ALL_SOURCES} Guide: [metrics, traces, logs](guide-telemetry.md#logs).",
    "server": "`penstock serve --host` and `--port` take precedence. The environment (as "
    f"`PENSTOCK_...`) and arguments can set {_SERVER}; the others are read from the file only. "
    "Guide: [server](guide-server.md).",
    "embedder": "Guide: [documents](guide-documents.md#settings).",
    "names": "Without this section, names are not masked. Guide: "
    "[masking of names](guide-documents.md#masking-of-names).",
    "llm": "Environment variables take precedence: `PENSTOCK_LLM_BASE_URL` and so on for the "
    "section, `PENSTOCK_LLM_PLAN_MODEL` and so on for a role. Guide: "
    "[language models](guide-models.md).",
    "llm.models": "By role: `ingest`, `plan`, `search`, `answer`. A string is short for "
    "`{model: ...}`. `plan` and `search` default to the model of `answer`.",
    "providers": f"By provider: {', '.join(f'`{name}`' for name in ADDRESSES)}.",
    "prices": "By the name of a model or a lane, and the first day (UTC) of each price: "
    "`gpt-4.1-mini: {2025-04-14: {input: 0.4, output: 1.6}}`. Guide: "
    "[usage](guide-usage.md#prices).",
    "budgets": "By payer, `tenant:NAME` or `task:TENANT/ID`: `tenant:acme: {cost: 5.0, per: day}`. "
    "Guide: [budgets](guide-usage.md#budgets).",
    "browser": "Guide: [search engines in a "
    "browser](guide-providers.md#search-engines-in-a-browser).",
    "browser.engines": "By a name that you choose: engine `x` is the provider `browser.x`, in the "
    "lane `browser.x`.",
    "librarian": "`penstock librarian --host` and `--port` take precedence. Guide: "
    "[librarian](guide-librarian.md).",
    "intake.kafka": "Guide: [Kafka intake](guide-kafka.md).",
}
"""Notes on sections, printed after the docstring of each."""

LANES = """\
# Lanes

<!-- Written by `python -m tools.reference` from src/penstock/model/lane.py. -->

The keys of a lane, and the lanes that exist without any configuration. See also the
[guide](guide-lanes.md).

## Keys

Set in `{file}` under `lanes:` and the lane's name, or in code with `Penstock(lanes={{...}})`. An
unknown key or an invalid value raises a `ConfigError`, which names the line of the file.
Configuring a built-in lane changes only the keys that are set. All times are in seconds.

| key | default | meaning |
|---|---|---|
{keys}

## Starts are spaced

The minimum interval between two starts in a lane is `interval_seconds / requests_per_interval` or
`min_interval_seconds`, whichever is longer, plus {spare}: at exactly a tenth of a second, some
windows of one second would contain eleven starts. If neither is set, it is {unknown} s plus
{spare}. A lane that was slowed down after repeated 429 uses a multiple of it. A start that is late
by more than {late:g} ms (or 1 % of the window, if that is more) is given up and requested again.

## Built-in lanes

"Interval" is the resulting minimum interval. A name with `*` is a pattern: each matching name is a
separate lane with these limits. If several patterns match, the longest applies.

| lane | rate | interval | parallel | timeout | parent |
|---|---|---|---|---|---|
{built_in}

A lane that is neither configured nor matched by a pattern has a minimum interval of {unknown} s and
{parallel} parallel requests; each process logs a warning once.
"""

KEYS = {
    "requests_per_interval": "Maximum starts in any window of `interval_seconds`.",
    "interval_seconds": "Window of `requests_per_interval` and of the limits of tokens; needs one "
    "of them, and they need it.",
    "min_interval_seconds": "Minimum interval between two starts, whatever the rate allows. 0 and "
    "no rate: unlimited.",
    "max_parallel": "Maximum concurrent requests (or running jobs). `auto`: learnt from how "
    "requests go ([guide](guide-lanes.md#learnt-limits)).",
    "auto_min": "With `max_parallel: auto`, the least it becomes.",
    "auto_max": "With `max_parallel: auto`, the most it becomes.",
    "requests_per_day": "Maximum starts per day (UTC).",
    "tokens_per_interval": "Maximum tokens, input and output, in any window of `interval_seconds`: "
    "reserved with a start, settled with the real use.",
    "input_tokens_per_interval": "The same of input tokens alone.",
    "output_tokens_per_interval": "The same of output tokens alone.",
    "tokens_per_day": "Maximum tokens per day (as `requests_per_day`).",
    "cost_per_day": "Maximum cost per day, in whatever unit amounts are given.",
    "window": "`sliding`: no window of `interval_seconds` holds more tokens than the limit. "
    "`bucket`: the limit is what a bucket holds that is refilled in `interval_seconds`.",
    "oversized": "A request larger than a limit: `refuse` it with `AmountTooLarge`, or let it "
    "through `alone`, when nothing else is counted.",
    "timeout_seconds": "Timeout of a run in this lane, if shorter than that of the job.",
    "breaker_first_seconds": "Delay before the first attempt while the breaker is open; it doubles "
    "with each further one.",
    "breaker_cap_seconds": "Maximum of that delay. Each delay is shortened by up to a fifth, at "
    "random.",
    "health_url": "Target of the probe while the lane has problems: `http://...` or `https://...` "
    "(any response but a 5xx is healthy), or `host:port` (a connection is healthy). Default: the "
    "host and port that `ctx.http` last failed to reach.",
    "probe_seconds": "Minimum interval between probes.",
    "parent": "Another lane whose limits are shared by all its children. It must be configured, "
    "and cannot have a parent itself.",
    "credentials": "Requests carry a key: when three jobs in a row are rejected (401, 403), the "
    "lane is blocked until somebody resumes it or a process starts with a new key. Set it to false "
    "where a rejection says nothing about a key.",
}
"""Description of each key of a lane."""

PROFILES_KEY = (
    "Overrides by credential: `{environment variable: {key: value}}`. Those whose variable is set "
    "are applied, in order."
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
    section = kind
    while not is_dataclass(section):  # a mapping of sections, or one that may be missing
        section = get_args(section)[1] if get_origin(section) is Mapping else get_args(section)[0]
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
        f"{lane.spacing:.4g} s" if lane.spacing else "none",
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
