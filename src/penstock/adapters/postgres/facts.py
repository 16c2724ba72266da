"""Inspects a PostgreSQL server for the doctor. Read-only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from penstock.adapters.database_facts import ClockSkew, Schema
from penstock.adapters.postgres.database import Connection, Database
from penstock.adapters.postgres.schema import DOCUMENTS, QUEUE, noted
from penstock.ports.documents import ServingModel

SETTINGS = ("fsync", "full_page_writes", "synchronous_commit")
"""What decides whether a commit is kept when the power fails."""


class Pgvector(NamedTuple):
    installed: str | None
    """Its version in this database."""
    available: bool
    """The server has it, so that it could be created here."""
    creatable: bool
    """And this user may do so."""


class PostgresFacts(NamedTuple):
    version: str
    major: int
    standby: bool
    settings: Mapping[str, str]
    clock: ClockSkew
    queue: Schema
    documents: Schema
    pgvector: Pgvector
    serving: ServingModel | None
    """None: it holds no documents' tables, or is not of this version."""


async def look(database: Database) -> PostgresFacts:
    """QueueError where the server cannot be reached, or refuses."""
    async with database.session("doctor") as connection:
        return await _look(connection, database)


async def _look(connection: Connection, database: Database) -> PostgresFacts:
    sent = time.time()
    server = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
    clock = ClockSkew.of(sent, server)
    queue = await noted(connection, database, QUEUE)
    documents = await noted(connection, database, DOCUMENTS)
    serving = None
    if documents.version == documents.known:
        serving = ServingModel(*await connection.fetchrow(database.sql("read_serving")))
    return PostgresFacts(
        version=await connection.fetchval("SHOW server_version"),
        major=connection.get_server_version().major,
        standby=await connection.fetchval("SELECT pg_is_in_recovery()"),
        settings={name: await connection.fetchval(f"SHOW {name}") for name in SETTINGS},
        clock=clock,
        queue=queue,
        documents=documents,
        pgvector=Pgvector(*await connection.fetchrow(database.sql("pgvector"))),
        serving=serving,
    )
