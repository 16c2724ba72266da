"""Server requirements of documents: pgvector, and its own tables beside the queue's."""

from __future__ import annotations

from typing import Any

import asyncpg

from penstock.adapters.postgres import schema
from penstock.adapters.postgres.database import Connection, Database
from penstock.errors import QueueUnusable

OLDEST_PGVECTOR = (0, 8)
"""Since then an index search goes on until a filter has let enough through."""

PGVECTOR_PATH = """
SELECT set_config('search_path', quote_ident(nspname) || ', pg_temp', true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'
"""
"""For this transaction: look for types and operators of pgvector where it is installed."""


async def prepare(database: Database) -> None:
    """Make what is missing, whoever else does so at the same moment. QueueUnusable says what
    somebody with more rights has to do."""
    async with database.session("set-up") as connection:
        await _install(connection, database)
        await schema.migrate(connection, database, schema.DOCUMENTS)


async def _install(connection: Connection, database: Database) -> None:
    place = database.address.shown
    async with connection.transaction():
        # Of the whole database, as the extension is; two who create it at once would collide.
        lock = "SELECT pg_advisory_xact_lock(hashtextextended('penstock vector', 0))"
        await connection.execute(lock, timeout=60)
        installed = await _installed(connection)
        if installed is None:
            await _create(connection, place)
            installed = await _installed(connection)
    version, folder, usable = installed
    if not usable:
        raise QueueUnusable(
            f"{place}: documents need pgvector, which this user may not use; GRANT USAGE ON SCHEMA "
            f"{folder} to it"
        )
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
        oldest = ".".join(map(str, OLDEST_PGVECTOR))
        raise QueueUnusable(
            f"{place} has pgvector {version}, documents need {oldest}; update it on the server, "
            "then let a superuser run ALTER EXTENSION vector UPDATE"
        )


async def _installed(connection: Connection) -> Any:
    """Version, schema, and whether this user may use what is in that; None: not installed."""
    return await connection.fetchrow(
        "SELECT extversion, quote_ident(nspname), has_schema_privilege(extnamespace, 'USAGE')"
        " FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
        " WHERE extname = 'vector'"
    )


async def _create(connection: Connection, place: str) -> None:
    available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"
    if not await connection.fetchval(available):
        raise QueueUnusable(
            f"{place}: documents need pgvector, which this server does not have; install it there, "
            "or keep documents elsewhere with `store: sqlite:///documents.db`"
        )
    try:
        await connection.execute("CREATE EXTENSION vector")
    except asyncpg.InsufficientPrivilegeError as error:
        raise QueueUnusable(
            f"{place}: documents need pgvector, which this user may not create; let a superuser "
            f"run CREATE EXTENSION vector in this database once ({error})"
        ) from error
