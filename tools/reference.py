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
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer

from penstock.cli import cli, main
from penstock.config import DEFAULT_FILE, DEFAULT_QUEUE
from penstock.model import settings

DOCS = Path(__file__).parents[1] / "docs"

SETTINGS = """\
# Settings

<!-- Written by `python -m tools.reference` from src/penstock/model/settings.py. -->

Each setting can be given in three places. The first that names it wins:

1. as an argument: `Penstock("sqlite:///jobs.db", max_workers=4)`;
2. in the environment: `PENSTOCK_MAX_WORKERS=4`;
3. in `{file}`: `max_workers: 4`.

`{file}` is looked for in the current folder. `PENSTOCK_CONFIG`, `--config` or
`Penstock(config_file=...)` name another file. An unknown name or a wrong value is a `ConfigError`
that says where it was found. `penstock config` shows every value and where it came from.

All times are in seconds.

| setting | default | meaning |
|---|---|---|
{rows}
"""

COMMANDS = """\
# Command line

<!-- Written by `python -m tools.reference` from what `--help` says. -->
"""


def settings_page() -> str:
    meanings = _meanings()
    defaults = {"queue": DEFAULT_QUEUE} | {f.name: f.default for f in fields(settings.Settings)}
    about = {"queue": "Where the jobs are: `sqlite:///` and a file, e.g. `sqlite:///jobs.db`."}
    rows = [
        f"| `{name}` | `{_value(default)}` | {(about | meanings)[name]} |"
        for name, default in defaults.items()
    ]
    return SETTINGS.format(file=DEFAULT_FILE, rows="\n".join(rows))


def _meanings() -> dict[str, str]:
    """The text under each field; fields without one share that of the field after them."""
    body = ast.parse(inspect.getsource(settings.Settings)).body[0]
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
        case _:
            return str(default)


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


PAGES = {"reference-settings.md": settings_page, "reference-cli.md": commands_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        sys.stdout.write(f"docs/{name}\n")
