"""`penstock config`: the settings, and where each comes from."""

from __future__ import annotations

from penstock.cli.output import Column, note, print_json, print_table
from penstock.cli.session import Session
from penstock.cli.text import printable


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
    columns = [Column("setting"), Column("value", fit="fold"), Column("source", fit="fold")]
    print_table(columns, [(n, _text(value), printable(source)) for n, value, source in rows])


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
