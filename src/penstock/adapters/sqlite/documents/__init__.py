"""Documents in a SQLite file: FTS5 for text, a matrix in memory for vectors."""

from penstock.adapters.sqlite.documents.store import SqliteDocuments

__all__ = ["SqliteDocuments"]
