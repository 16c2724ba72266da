"""Inspects a SQLite file for the doctor. Read-only: creates no file, directory or table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from penstock.adapters.database_facts import Schema
from penstock.adapters.sqlite.database import explain
from penstock.adapters.sqlite.schema import migrations, refuse_foreign, version_of
from penstock.adapters.sqlite.transaction import sql
from penstock.ports.documents import ServingModel

LOOK_SECONDS = 2.0
"""How long a lock of somebody else is waited for."""


class SqliteFacts(NamedTuple):
    schema: Schema
    journal: str
    """`wal`, unless somebody has switched it."""
    serving: ServingModel | None
    """None: it holds no documents' tables, or is not of this version."""


def look(path: Path) -> SqliteFacts:
    """QueueError where it cannot be read, is damaged, or is another program's. Blocks."""
    known = len(migrations())
    if not path.exists() or path.stat().st_size == 0:
        return SqliteFacts(Schema(0, 0, known), "wal", None)
    try:
        refuse_foreign(path)
        uri = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=LOOK_SECONDS)) as connection:
            version = version_of(connection)
            (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
            current = None
            if version == known:
                current = ServingModel(*connection.execute(sql("read_serving")).fetchone())
    except sqlite3.Error as error:
        raise explain(error, path) from error
    return SqliteFacts(Schema(version, version, known), journal, current)
