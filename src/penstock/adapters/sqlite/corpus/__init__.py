"""The corpus in a SQLite file: FTS5 for text, a matrix in memory for vectors."""

from penstock.adapters.sqlite.corpus.corpus import SqliteCorpus

__all__ = ["SqliteCorpus"]
