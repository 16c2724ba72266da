"""Full text search: the index finds what holds a term, BM25 puts it in order.

PostgreSQL has no BM25, and reading every chunk that holds a frequent word would take seconds.
So, bounded at each step:

1. From the rarest term on, the index is asked for the chunks that hold it, until READ entries
   were read. More frequent terms find nothing more, but count in step 3. One term that is more
   frequent than that alone: READ of its chunks, whichever come first.
2. Of those chunks the SCORED that hold the most weight of these terms.
3. Those are ordered by BM25, with all terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.adapters.postgres.corpus.counts import lexeme
from penstock.adapters.postgres.corpus.scope import Extent, Filter
from penstock.adapters.postgres.corpus.vectors import FEW
from penstock.adapters.postgres.database import Connection, Database
from penstock.corpus.bm25 import bm25
from penstock.corpus.query import weight
from penstock.model.document import Hit
from penstock.ports.corpus import Wanted

READ = 10_000
SCORED = 500


async def by_text(
    database: Database, connection: Connection, wanted: Wanted, where: Filter, extent: Extent
) -> list[Hit]:
    """The chunks that have most of the terms, the rare ones counting most."""
    counts = await _counts(database, connection, extent.tenant, wanted.terms)
    asked = wanted.choose(counts, extent.chunks)
    weights = {term: weight(counts[term], extent.chunks) for term in asked if term in counts}
    if not weights or not extent.within:
        return []
    narrow = extent.within <= FEW
    leading = sorted(weights, key=lambda term: counts[term])
    if not narrow:
        leading = _within(leading, counts)
    terms, values, scored = (f"${len(where.values) + n}" for n in (1, 2, 3))
    if narrow:
        found = (
            " FROM penstock.documents AS d JOIN penstock.chunks AS c ON c.document = d.number"
            " AND c.generation = d.live"
            f" JOIN unnest({terms}::text[], {values}::float8[]) AS t (term, weight)"
            " ON c.lexemes @@ t.term::tsquery"
        )
    else:
        found = (
            f" FROM unnest({terms}::text[], {values}::float8[]) AS t (term, weight)"
            " CROSS JOIN LATERAL (SELECT number, document, generation FROM penstock.chunks"
            f" WHERE lexemes @@ t.term::tsquery LIMIT {READ}) AS c"
            " JOIN penstock.documents AS d ON d.number = c.document AND d.live = c.generation"
        )
    rows = await connection.fetch(
        database.sql(
            "SELECT chunks.number, chunks.terms FROM (SELECT c.number, sum(t.weight) AS weight"
            f"{found} WHERE {where.condition} GROUP BY c.number"
            f" ORDER BY weight DESC, c.number LIMIT {scored}) AS best"
            " JOIN penstock.chunks ON chunks.number = best.number"
        ),
        *where.values,
        [_quoted(lexeme(extent.tenant, term)) for term in leading],
        [weights[term] for term in leading],
        max(SCORED, wanted.limit),
    )
    hits = [
        Hit(row["number"], bm25(row["terms"].split(), weights, extent.mean_length)) for row in rows
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk))[: wanted.limit]


async def _counts(
    database: Database, connection: Connection, tenant: int, terms: Sequence[str]
) -> dict[str, int]:
    """How many chunks of the tenant hold each term; no entry where none does."""
    rows = await connection.fetch(
        database.sql(
            "SELECT lexeme, chunks FROM penstock.term_counts WHERE lexeme = ANY ($1) AND chunks > 0"
        ),
        [lexeme(tenant, term) for term in terms],
    )
    return {row["lexeme"].partition(" ")[2]: row["chunks"] for row in rows}


def _within(rarest_first: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """As many as can be read, and at least one."""
    some: list[str] = []
    left = READ
    for term in rarest_first:
        left -= counts[term]
        if left < 0 and some:
            break
        some.append(term)
    return some


def _quoted(lexeme: str) -> str:
    """A lexeme as a tsquery, whatever it holds."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
