"""The queue and the store in one SQLite file; `migrations/` has their tables."""

from penstock.adapters.sqlite.queue import SqliteQueue

__all__ = ["SqliteQueue"]
