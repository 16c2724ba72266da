"""Per-tenant counts of chunks, terms, and chunks per term.

Counts are exact and cost a search nothing. They are kept in the transaction that publishes, under
the lock of the tenant's row, so one process at a time publishes of a tenant, and all that it has
to publish; what takes long (parsing, embedding, staging) is done before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.document_rows import pages_column
from penstock.model.document import NewChunk

_NUMBER = "SELECT number FROM penstock.tenants WHERE name = $1"


async def tenant_number(tx: Transaction, name: str) -> int:
    """The number of a tenant, who is made known if need be."""
    number: int | None = await tx.fetchval(_NUMBER, name)
    if number is None:
        add = "INSERT INTO penstock.tenants (name) VALUES ($1) ON CONFLICT (name) DO NOTHING"
        await tx.execute(add, name)
        number = await tx.fetchval(_NUMBER, name)
    assert number is not None
    return number


def lexeme(tenant: int, term: str) -> str:
    """A term as chunks of a tenant are indexed by. No term holds a space."""
    return f"{tenant} {term}"


MARKS = {2: " 2", 4: " 4"}
"""Of a lexeme whose term is held so often."""


def lexemes(tenant: int, terms: Sequence[str]) -> str:
    """What a chunk with these terms is indexed by, a line for each lexeme."""
    times = Counter(terms)
    marked = [
        term + mark for least, mark in MARKS.items() for term, n in times.items() if n >= least
    ]
    if not times:
        return ""
    before = lexeme(tenant, "")
    return before + f"\n{before}".join((*times, *marked))


def chunk_row(tenant: int, chunk: NewChunk) -> tuple[Any, ...]:
    """A chunk as `stage_chunks` takes it."""
    text, start, end, fresh, tokens, _, section, digest, terms, script, _ = chunk
    apart = terms.split()
    return (
        *(text, start, end, fresh, tokens, pages_column(chunk), json.dumps(section)),
        *(digest, " ".join(apart), len(apart), lexemes(tenant, apart), script),
    )


class VersionChange(NamedTuple):
    """Of a document, one version takes the place of another; None: there is none."""

    document: int
    old: int | None
    new: int | None


async def replace(tx: Transaction, tenant: str, moves: Sequence[VersionChange]) -> None:
    """Count versions of a tenant's documents instead of others, while the chunks of all of them
    are there."""
    moves = [move for move in moves if move.old != move.new]
    if not moves:
        return
    number = await tx.fetchval(f"{_NUMBER} FOR UPDATE", tenant)
    columns = [list(column) for column in zip(*moves, strict=True)]
    await tx.execute("count_terms", *columns)
    if any(move.old is not None for move in moves):
        await tx.execute("forget_terms", *columns[:2])
    await tx.execute("count_chunks", *columns, number)
