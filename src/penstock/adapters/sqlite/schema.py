"""Creates, upgrades and checks the tables: a change is a new file in `migrations/`."""

from __future__ import annotations

import sqlite3
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from penstock.adapters.sql.migrations import migration_for_sqlite, read_migrations
from penstock.adapters.sqlite import database
from penstock.adapters.sqlite.transaction import transaction
from penstock.errors import QueueUnusable

APPLICATION_ID = 0x50454E4B
"""Marks a file as a Penstock queue."""


def refuse_foreign(path: Path) -> None:
    """QueueUnusable if the file is another program's database. Only reads."""
    if not path.exists() or path.stat().st_size == 0:
        return
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro", uri=True, timeout=database.BUSY_SECONDS
    )
    try:
        connection.execute("BEGIN")  # one snapshot: it may be in the making
        ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        used = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    finally:
        connection.close()
    if used and not ours:
        raise QueueUnusable(f"{path} is the database of another program; name another file")


@cache
def migrations() -> list[list[str]]:
    """The statements of every migration this code knows, in order."""
    found = read_migrations(files("penstock.adapters.sqlite") / "migrations")
    return [_statements(migration_for_sqlite(text)) for _, text in found]


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema to this version, whoever else opens the file at the same moment."""
    steps = migrations()
    if version_of(connection) == len(steps):
        return
    with transaction(connection):
        version = version_of(connection)
        if version > len(steps):
            raise QueueUnusable(
                f"{path} has schema version {version}, this Penstock knows {len(steps)}; "
                "upgrade Penstock"
            )
        for step in steps[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")


def version_of(connection: sqlite3.Connection) -> int:
    """How many migrations have been applied."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _statements(script: str) -> list[str]:
    """The statements of a script (executescript would commit the transaction it is in)."""
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
