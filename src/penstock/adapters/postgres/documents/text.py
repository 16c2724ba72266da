"""Full-text search: the index finds candidates, BM25 ranks them.

PostgreSQL has no BM25, and reading every chunk that holds a frequent word would take seconds.
So, bounded at each step:

1. From the rarest term on, the index is asked for the chunks that hold it, until READ of them
   were read. More frequent terms find nothing more, but count in step 3. One term that is more
   frequent than that alone: READ of its chunks, whichever come first.
2. Of those chunks the SCORED that come first by about BM25: by the weight of these terms, held
   once, twice or four times, as far as the index can tell, and by their length.
3. Those are ordered by BM25 itself, with all terms.

Where a scope leaves few chunks, all of them that hold a term are ordered so. So they are where it
leaves READ at the most and too few were found, for want of reading on.

PostgreSQL finds the chunks that hold a term but weighs all terms alike; the store takes the few
hundred that hold the most weight and orders them by this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.adapters.postgres.database import Connection, Database
from penstock.adapters.postgres.documents.publish import lexeme
from penstock.adapters.postgres.documents.scope import Extent, Filter
from penstock.adapters.postgres.documents.vectors import FEW
from penstock.model.document import Hit
from penstock.ports.documents import DocumentQuery
from penstock.retrieval.query import weight

READ = 20_000
SCORED = 500
GAINS = {"": 1.0, " 2": 0.375, " 4": 0.317}
"""What BM25 gives a term of a chunk of usual length, and what for holding it so much oftener; by
the mark of the lexeme."""


async def by_text(
    database: Database, connection: Connection, wanted: DocumentQuery, where: Filter, extent: Extent
) -> list[Hit]:
    """The chunks that have most of the terms, the rare ones counting most."""
    counts = await _counts(database, connection, extent.tenant, wanted.terms)
    asked = wanted.choose(counts, extent.chunks)
    weights = {term: weight(counts[term], extent.chunks) for term in asked if term in counts}
    if not weights:
        return []
    lexemes = {term: lexeme(extent.tenant, term) for term in weights}

    async def every() -> list[Any]:
        values = list(where.values)
        text = _every(where, values, list(lexemes.values()))
        return list(await connection.fetch(database.sql(text), *values))

    async def best() -> list[Any]:
        values = list(where.values)
        leading = {lexemes[term]: weights[term] for term in _leading(weights, counts)}
        most = max(SCORED, wanted.limit)
        text = _best(where, values, leading, extent.mean_length, most)
        return list(await connection.fetch(database.sql(text), *values))

    if extent.within <= FEW:
        rows = await every()
    else:
        rows = await best()
        unread = sum(counts[term] for term in weights) > READ
        if len(rows) < wanted.limit and unread and extent.within <= READ:
            # The scope may leave only chunks with terms that were not read, or not to their end.
            rows = await every()
    hits = [
        Hit(row["number"], bm25(row["terms"].split(), weights, extent.mean_length)) for row in rows
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk))[: wanted.limit]


def _every(where: Filter, values: list[Any], lexemes: Sequence[str]) -> str:
    """The statement for every chunk that holds one of the lexemes; appends to its `values`."""
    values.append(" | ".join(map(_quoted, lexemes)))
    return (
        "SELECT c.number, c.terms FROM penstock.documents AS d"
        " CROSS JOIN LATERAL (SELECT number, terms, lexemes FROM penstock.chunks"
        " WHERE document = d.number AND generation = d.live OFFSET 0) AS c"
        f" WHERE {where.condition} AND c.lexemes @@ ${len(values)}::text::tsquery"
    )


def _best(
    where: Filter, values: list[Any], lexemes: Mapping[str, float], mean: float, most: int
) -> str:
    """The statement for the `most` promising chunks (steps 1 and 2); appends to its `values`."""
    marked = {
        _quoted(one + mark): worth * gain
        for one, worth in lexemes.items()
        for mark, gain in GAINS.items()
    }
    # What divides BM25 where a term is held once: so much, and so much more for each term.
    least, each = 1 + SATURATION * (1 - LENGTH_SHARE), SATURATION * LENGTH_SHARE / mean
    names = [f"${len(values) + n}" for n in (1, 2, 3, 4, 5)]
    values += [list(marked), list(marked.values()), least, each, most]
    return (
        "SELECT chunks.number, chunks.terms FROM ("
        f"SELECT c.number, sum(t.weight) / ({names[2]}::float8 + {names[3]}::float8 * c.length)"
        f" AS score FROM unnest({names[0]}::text[], {names[1]}::float8[]) AS t (lexeme, weight)"
        " CROSS JOIN LATERAL (SELECT number, document, generation, length FROM penstock.chunks"
        f" WHERE lexemes @@ t.lexeme::tsquery LIMIT {READ}) AS c"
        " CROSS JOIN LATERAL (SELECT FROM penstock.documents AS d WHERE d.number = c.document"
        f" AND d.live = c.generation AND {where.condition} OFFSET 0) AS d"
        " GROUP BY c.number, c.length"
        f" ORDER BY score DESC, c.number LIMIT {names[4]}) AS best"
        " JOIN penstock.chunks ON chunks.number = best.number"
    )


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


def _leading(terms: Iterable[str], counts: Mapping[str, int]) -> list[str]:
    """From the rarest on, as many as can be read, and at least one."""
    some: list[str] = []
    left = READ
    for term in sorted(terms, key=lambda term: counts[term]):
        left -= counts[term]
        if left < 0 and some:
            break
        some.append(term)
    return some


def _quoted(lexeme: str) -> str:
    """A lexeme as a tsquery, whatever it holds."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


SATURATION = 1.2
LENGTH_SHARE = 0.75


def bm25(terms: Sequence[str], weights: Mapping[str, float], mean_length: float) -> float:
    """The score of a chunk with these `index_terms` for a query's `weights`; higher is better.

    `mean_length` is the mean number of terms of the corpus's chunks.
    """
    counts = dict.fromkeys(weights, 0)
    for term in terms:
        if term in counts:
            counts[term] += 1
    relative = len(terms) / mean_length if mean_length > 0 else 1.0
    damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * relative)
    return sum(
        weights[term] * count * (SATURATION + 1) / (count + damping)
        for term, count in counts.items()
    )
