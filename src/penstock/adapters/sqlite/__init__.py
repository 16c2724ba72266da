"""The queue in one SQLite file, shared by any number of processes on one machine."""

from penstock.adapters.sqlite.queue import SqliteQueue

__all__ = ["SqliteQueue"]
