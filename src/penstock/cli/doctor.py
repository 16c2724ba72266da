"""`penstock config` and `penstock doctor`: shows the settings, and checks what is configured."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from penstock.cli.errors import ExitCode
from penstock.cli.options import flag
from penstock.cli.output import (
    Looks,
    console,
    is_terminal,
    note,
    print_json,
    print_table,
    rich_table,
    say,
)
from penstock.cli.session import Session
from penstock.cli.text import printable

if TYPE_CHECKING:
    from penstock.doctor.diagnosis import Diagnosis

END_SECONDS = 1.0
"""Time for the process to exit after the report."""
STYLES = {"broken": "bold red", "warning": "yellow", "ok": "green", "skipped": "dim"}
"""Worst first, as they are counted at the end."""


def run_doctor(
    *,
    network: bool = flag("--network", "Also check that search providers are reachable."),
    session: Session,
) -> None:
    """Check every configured component, and say how to fix what is wrong.

    Config file, queue, store, durability, clocks, schema, disks, blobs, embedder, models,
    librarian, browser, providers, Kafka, server, workers, lanes, dead letters. It is read-only and
    migrates nothing; passwords and keys are not shown. Each check has a time limit.

    The exit code is 1 if something is broken, and 0 if there are only warnings.
    """
    import asyncio

    from penstock.cli.stopping import exit_after
    from penstock.doctor.diagnosis import Status, worst
    from penstock.doctor.run import examine

    with asyncio.Runner() as runner:
        findings = runner.run(examine(session.queue, session.config, network=network))
        status = worst(findings)
        if session.as_json:
            print_json({"status": status, "findings": [asdict(finding) for finding in findings]})
        else:
            _print(findings)
        sys.stdout.flush()
        code = ExitCode.UNSUCCESSFUL if status is Status.BROKEN else ExitCode.OK
        # The runner waits for its threads, and one of them may wait for a name server that hangs.
        ending = exit_after(END_SECONDS, code)
    ending.cancel()
    raise typer.Exit(code)


def _print(findings: list[Diagnosis]) -> None:
    """Print a table for people, or a line of JSON per component."""
    rows = [
        {
            "status": one.status,
            "part": one.part,
            "found": printable(one.found),
            "what to do": printable(one.advice),
        }
        for one in findings
    ]
    if is_terminal():
        looks = Looks(fold=["found", "what to do"], styles={"status": STYLES.get})
        console().print(rich_table(rows, looks))
    else:
        width = max(len(one.part) for one in findings)
        for status, part, found, advice in map(dict.values, rows):
            todo = f". To do: {advice}" if advice else ""
            say(f"{status:<7}  {part:<{width}}  {found}{todo}")
    count = Counter(one.status for one in findings)
    order = sorted(count, key=list(STYLES).index)
    say(", ".join(f"{count[status]} {status}" for status in order))


def show_config(*, session: Session) -> None:
    """Show the settings and where each comes from.

    Arguments take precedence over the environment (PENSTOCK_MAX_WORKERS=4), which takes
    precedence over penstock.yaml. Passwords are hidden.
    """
    from penstock.config import load

    loaded = load({"queue": session.queue}, file=session.config)
    rows = loaded.rows()
    for warning in loaded.warnings:
        note(f"warning: {warning}\n")
    if session.as_json:
        print_json([{"name": n, "value": value, "source": source} for n, value, source in rows])
        return
    table = [
        {"setting": n, "value": _text(value), "source": printable(source)}
        for n, value, source in rows
    ]
    print_table(table, Looks(fold=["value", "source"]))


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}" if value < 1e6 else f"{value:.0f}"
        case tuple():
            return printable(", ".join(value))
        case _:
            return printable(str(value))
