"""The queue in a PostgreSQL database, shared by any number of processes and machines."""

from penstock.adapters.postgres.queue import PostgresQueue

__all__ = ["PostgresQueue"]
