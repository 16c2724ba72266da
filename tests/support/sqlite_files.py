"""New SQLite files with the schema in them, copied: making it takes more time than a short test."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from penstock.adapters.sqlite.database import connect
from penstock.adapters.sqlite.schema import migrate


def make_file(path: Path) -> None:
    """What the first to open `path` would make of it."""
    path.touch(0o600, exist_ok=False)
    path.write_bytes(_new())


@cache
def _new() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "new.db")
        connection = connect(path, "NORMAL")
        migrate(connection, path)
        connection.close()
        return path.read_bytes()
