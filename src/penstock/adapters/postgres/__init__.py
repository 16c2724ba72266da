"""The queue and the store in PostgreSQL; `migrations/` has their tables and functions."""

from penstock.adapters.postgres.queue import PostgresQueue

__all__ = ["PostgresQueue"]
