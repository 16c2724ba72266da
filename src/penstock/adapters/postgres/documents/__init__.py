"""Documents in a PostgreSQL database: a GIN index for text, pgvector for vectors."""

from penstock.adapters.postgres.documents.store import PostgresDocuments

__all__ = ["PostgresDocuments"]
