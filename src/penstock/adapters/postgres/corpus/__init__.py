"""The corpus in a PostgreSQL database: a GIN index for text, pgvector for vectors."""

from penstock.adapters.postgres.corpus.corpus import PostgresCorpus

__all__ = ["PostgresCorpus"]
