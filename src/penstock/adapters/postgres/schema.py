"""Creates, upgrades and checks the tables: a change is a new file in `migrations/`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from penstock.adapters.database_facts import Schema
from penstock.adapters.postgres.database import Connection, Database, in_schema
from penstock.adapters.sql.migrations import read_migrations
from penstock.errors import QueueUnusable

OLDEST_SERVER = 14
_TABLES = (
    "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1 AND c.relkind = 'r'"
)


class Series(NamedTuple):
    """Migrations that are counted together."""

    folder: str
    table: str
    """Where it is noted which are there."""
    tables: tuple[str, ...]
    """What is there if any of them is."""


class Migration(NamedTuple):
    version: int
    name: str
    needs: int
    text: str


QUEUE = Series("migrations", "migrations", ("migrations", "queue"))
DOCUMENTS = Series("documents/migrations", "document_migrations", ("document_migrations",))
"""Apart from the queue's: most queues have no documents, and may be where pgvector is not."""


@cache
def migrations(series: Series = QUEUE) -> tuple[Migration, ...]:
    """Every migration this code knows, in order."""
    folder = files("penstock.adapters.postgres").joinpath(*series.folder.split("/"))
    found = []
    for name, text in read_migrations(folder):
        needs = re.match(r"-- needs (\d+)\n", text)
        assert needs is not None, f"{name} must begin with what it needs"
        found.append(Migration(int(name[:4]), name, int(needs[1]), text))
    return tuple(found)


async def prepare(database: Database) -> str:
    """Bring the namespace to this version, whoever else does so at the same moment. Returns the
    queue's id. QueueUnusable when it is not ours, too new, or may not be made."""
    async with database.session("set-up") as connection:
        version = connection.get_server_version().major
        if version < OLDEST_SERVER:
            raise QueueUnusable(f"PostgreSQL {version} is too old; {OLDEST_SERVER} is needed")
        await migrate(connection, database, QUEUE)
        queue_id: str = await connection.fetchval(database.sql("SELECT id FROM penstock.queue"))
    return queue_id


async def exists(database: Database) -> bool:
    """Whether there is a queue in the namespace. Only looks."""
    async with database.session("set-up") as connection:
        return await _version(connection, database, QUEUE) > 0


async def migrate(connection: Connection, database: Database, series: Series) -> None:
    """Apply what is missing of a series. That of documents needs the queue's to be there."""
    steps, schema = migrations(series), database.address.schema
    if await _version(connection, database, series) >= len(steps):
        return
    async with connection.transaction():
        # Not a lock of the table, which may have to be made first.
        lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
        await connection.execute(lock, f"penstock {database.address.namespace}", timeout=60)
        version = await _version(connection, database, series)
        if version == 0 and series is QUEUE:
            await _make_schema(connection, database)
        for step in steps[version:]:
            await connection.execute(in_schema(step.text, schema), timeout=600)
            await connection.execute(
                f"INSERT INTO {schema}.{series.table} (version, name, needs) VALUES ($1, $2, $3)",
                *step[:3],
            )


async def _make_schema(connection: Connection, database: Database) -> None:
    namespace = database.address.namespace
    there = await connection.fetchval(
        "SELECT count(*) FROM pg_namespace WHERE nspname = $1", namespace
    )
    if await connection.fetchval(f"SELECT count(*) {_TABLES}", namespace):
        raise QueueUnusable(
            f"namespace {namespace} of {database.address.shown} holds the tables of another "
            "program; name another with ?namespace="
        )
    if not there:  # it may have been made for a user who may not make one
        await connection.execute(f"CREATE SCHEMA {database.address.schema}")


async def noted(connection: Connection, database: Database, series: Series) -> Schema:
    """Which migrations the database says it has. Only looks."""
    schema, known = database.address.schema, len(migrations(series))
    # From the catalogue itself: to_regclass may answer from memory, and somebody else may just
    # have made them.
    found = await connection.fetchval(
        f"SELECT count(*) {_TABLES} AND relname = ANY ($2)",
        database.address.namespace,
        list(series.tables),
    )
    if found < len(series.tables):
        return Schema(0, 0, known)
    version, needs = await connection.fetchrow(
        f"SELECT coalesce(max(version), 0), coalesce(max(needs), 0) FROM {schema}.{series.table}"
    )
    return Schema(version, needs, known)


async def _version(connection: Connection, database: Database, series: Series) -> int:
    """How many migrations there are; 0 when there is none. QueueUnusable if it is too new."""
    found = await noted(connection, database, series)
    if found.too_new:
        raise QueueUnusable(
            f"{database.address.shown} has schema version {found.version}, which needs a newer "
            f"Penstock (this one knows {found.known}); upgrade Penstock"
        )
    return found.version
