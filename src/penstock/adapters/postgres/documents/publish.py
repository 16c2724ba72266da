"""Publishes versions of documents: those of one tenant together, in one transaction, because
only one writer at a time may update a tenant's counts.

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
from penstock.adapters.sql import documents, serving
from penstock.adapters.sql.document_rows import pages_column
from penstock.errors import QueueError
from penstock.model.document import NewChunk
from penstock.ports.documents import Version

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


async def replace_counts(tx: Transaction, tenant: str, moves: Sequence[VersionChange]) -> None:
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


AT_ONCE = 16
"""Documents at most: a transaction is not to take long."""


async def publish(
    tx: Transaction, tenant: str, versions: Sequence[Version], model: str
) -> list[bool | Exception]:
    """For each version of the tenant what `DocumentStore.publish` promises."""
    refs = [version.ref for version in versions]
    rows = await tx.fetch(
        "lock_versions",
        [ref.tenant for ref in refs],
        [ref.collection for ref in refs],
        [ref.id for ref in refs],
        [version.generation for version in versions],
    )
    moves = {
        row["place"] - 1: VersionChange(
            row["number"], row["live"], versions[row["place"] - 1].generation
        )
        for row in rows
    }
    answers: list[bool | Exception] = [place in moves for place in range(len(versions))]
    if model and moves:
        missing = await _without_vector(tx, list(moves.values()), model)
        for place in [place for place, move in moves.items() if move.document in missing]:
            count = missing[moves.pop(place).document]
            answers[place] = QueueError(f"{count} chunks of {refs[place].id} have no vector yet")
        await serving.use(tx, model)
    if moves:
        generations = {move.document: versions[at].generation for at, move in moves.items()}
        await replace_counts(tx, tenant, list(moves.values()))
        await documents.publish(tx, generations)
    return answers


async def _without_vector(
    tx: Transaction, moves: Sequence[VersionChange], model: str
) -> dict[int, int]:
    """How many chunks have no vector of `model`, by document, where any has none."""
    rows = await tx.fetch(
        "without_vector", [move.document for move in moves], [move.new for move in moves], model
    )
    return dict(map(tuple, rows))
