"""Reads migrations: an adapter's own, with the tables that both databases have in `tables/`.

`-- tables: x` in a migration stands for the text of `tables/x.sql`, written for PostgreSQL. SQLite
reads it without collations; where PostgreSQL has storage parameters for a table, SQLite keeps it
in the index of its primary key.
"""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

from penstock.adapters.sql.dialect import for_sqlite

_TABLES = re.compile(r"^-- tables: (\w+)\n", re.MULTILINE)
_FOR_SQLITE = (
    (r"\w+ GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT"),
    (r' COLLATE "C"', ""),
    (r"\bbytea\b", "BLOB"),
    (r"\) WITH \([^)]*\);", ") WITHOUT ROWID;"),
)


def read_migrations(folder: Traversable) -> list[tuple[str, str]]:
    """The name and text of every migration in a folder, in order."""
    found = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".sql"))
    return [(name, _TABLES.sub(_tables, file.read_text())) for name, file in found]


def migration_for_sqlite(text: str) -> str:
    """A migration as SQLite takes it."""
    for pattern, replacement in _FOR_SQLITE:
        text = re.sub(pattern, replacement, text)
    return for_sqlite(text)


def _tables(named: re.Match[str]) -> str:
    return (files("penstock.adapters.sql") / "tables" / f"{named[1]}.sql").read_text()
