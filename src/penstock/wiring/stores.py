"""Creates the store of an app: the queue's own database, or the one that `store` names."""

from __future__ import annotations

from penstock.adapters.sql.store import Store
from penstock.config import Config
from penstock.errors import ConfigError
from penstock.errors.extras import needing
from penstock.ports.queue import JobQueue


def choose_store(queue: JobQueue, config: Config, what: str) -> Store:
    """The store for `what`. ConfigError names the setting where there is none."""
    url = config.store or queue.url
    if url.startswith(("postgresql:", "postgres:")):
        return _postgres(queue, config)
    from penstock.adapters.sqlite.file import SqliteFile
    from penstock.adapters.sqlite.store import SqliteStore

    if not config.store and isinstance(queue, SqliteFile):
        return SqliteStore(queue, shared=True)
    if config.store.startswith("sqlite:"):
        return SqliteStore(SqliteFile(config.store, durable=config.engine.durable), shared=False)
    raise ConfigError(
        f"{what} need a store: set `store: sqlite:///documents.db` or `store: postgresql://...` "
        "(Redis does not hold them)"
    )


def _postgres(queue: JobQueue, config: Config) -> Store:
    with needing("PostgreSQL stores need", "postgres"):
        from penstock.adapters.postgres import PostgresQueue
        from penstock.adapters.postgres.address import parse
        from penstock.adapters.postgres.database import Database
        from penstock.adapters.postgres.store import PostgresStore
    if isinstance(queue, PostgresQueue) and (
        not config.store or parse(config.store) == queue.database.address
    ):
        return PostgresStore(queue.database, queue.pool)
    return PostgresStore(Database(parse(config.store), poll_only=config.engine.poll_only))
