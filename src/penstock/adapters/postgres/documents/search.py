"""Search: its scope, then full text and vectors on one snapshot."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.adapters.postgres.database import Connection, Database, Transaction
from penstock.adapters.postgres.documents.schema import PGVECTOR_PATH
from penstock.adapters.postgres.documents.text import by_text
from penstock.adapters.postgres.documents.vectors import near
from penstock.adapters.sql.document_rows import facts, places
from penstock.ports.documents import DocumentQuery, Findings, Scope

COUNTED = 10_000
"""Documents that are looked at to tell how much a scope leaves."""


class Filter(NamedTuple):
    """A scope as a condition on `d`, the documents."""

    condition: str
    """With a $n for each value, from 1 on."""
    values: list[Any]


def condition(scope: Scope) -> Filter:
    """Only what is asked for is part of the condition, so that each can go by its own index."""
    parts, values = ["d.tenant = $1", "d.live IS NOT NULL"], [scope.tenant]

    def add(part: str, value: Any) -> None:
        values.append(value)
        parts.append(part.replace("?", f"${len(values)}"))

    if scope.collections is not None:
        add("d.collection = ANY (?)", list(scope.collections))
    if scope.documents is not None:
        add("d.id = ANY (?)", list(scope.documents))
    if scope.metadata:
        add("d.facts @> ?", facts(scope.metadata))
    return Filter(" AND ".join(parts), values)


class Extent(NamedTuple):
    """The amount of data a search covers."""

    tenant: int
    """Its number."""
    chunks: int
    """Of the tenant."""
    terms: int
    """In them."""
    within: int
    """Chunks that the scope leaves, about: of the newest versions, which may not be live yet, and
    of COUNTED documents at most. Only good for choosing a way to search."""
    all: int
    """Chunks of all tenants."""

    @property
    def mean_length(self) -> float:
        return self.terms / self.chunks if self.chunks else 0.0


async def extent_of(
    database: Database, connection: Connection, scope: Scope, where: Filter
) -> Extent | None:
    """None: the tenant has nothing."""
    row = await connection.fetchrow(
        database.sql(
            "SELECT number, chunks, terms,"
            " (SELECT sum(chunks)::bigint FROM penstock.tenants) AS total"
            " FROM penstock.tenants WHERE name = $1 AND chunks > 0"
        ),
        scope.tenant,
    )
    if row is None:
        return None
    within = row["chunks"]
    if len(where.values) > 1:
        within = await connection.fetchval(
            database.sql(
                "SELECT coalesce(sum(chunks), 0)::bigint FROM (SELECT d.chunks"
                f" FROM penstock.documents AS d WHERE {where.condition} LIMIT {COUNTED}) AS counted"
            ),
            *where.values,
        )
    return Extent(row["number"], row["chunks"], row["terms"], within, row["total"])


_SETTINGS = """
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_sort', 'off', true),
       set_config('enable_material', 'off', true), set_config('join_collapse_limit', '1', true),
       set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.ef_search', $1, true), set_config('hnsw.max_scan_tuples', $2, true),
       set_config('statement_timeout', $3, true),
       set_config('idle_in_transaction_session_timeout', '5s', true)
"""
"""Statements go by index, and join in the order they are written in, whatever the statistics say;
`LATERAL (... OFFSET 0)` in them is what the planner cannot turn round.
Without sorts the order by distance comes from its index; where there is none for it, a sort is used
all the same."""
STATEMENT_SECONDS = 4.0
LATE_SECONDS = 0.1
"""Who asks gives up first; the server only if that cannot be, or cannot say so."""
EF_SEARCH = 120
"""How many the index looks at at once; somewhat more than a search asks for."""
SCANNED = 100_000
"""How many the index looks at, at most, to find enough that pass a filter."""


async def find(database: Database, connection: Connection, wanted: DocumentQuery) -> Findings:
    where = condition(wanted.scope)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(PGVECTOR_PATH)
        await connection.fetch(_SETTINGS, str(EF_SEARCH), str(SCANNED), _patience(wanted))
        extent = await extent_of(database, connection, wanted.scope, where)
        if extent is None:
            return Findings([], [], {})
        text = await by_text(database, connection, wanted, where, extent) if wanted.terms else []
        vector = []
        if wanted.vector is not None:
            vector = await near(database, connection, wanted, where, extent)
        found = {hit.chunk for hit in (*text, *vector)}
        return Findings(text, vector, await places(Transaction(database, connection, 0.0), found))


def _patience(wanted: DocumentQuery) -> str:
    """How long the server may work on each statement."""
    asked = STATEMENT_SECONDS if wanted.seconds is None else wanted.seconds + LATE_SECONDS
    return f"{1000 * min(STATEMENT_SECONDS, asked):.0f}ms"
