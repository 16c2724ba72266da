"""Search: full text and vectors on one snapshot."""

from __future__ import annotations

from penstock.adapters.postgres.database import Connection, Database, Transaction
from penstock.adapters.postgres.documents import scope as scopes
from penstock.adapters.postgres.documents.schema import PGVECTOR_PATH
from penstock.adapters.postgres.documents.text import by_text
from penstock.adapters.postgres.documents.vectors import near
from penstock.adapters.sql.document_rows import places
from penstock.ports.documents import DocumentQuery, Findings

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
    where = scopes.condition(wanted.scope)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(PGVECTOR_PATH)
        await connection.fetch(_SETTINGS, str(EF_SEARCH), str(SCANNED), _patience(wanted))
        extent = await scopes.extent(database, connection, wanted.scope, where)
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
