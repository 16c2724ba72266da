"""Publishes versions of documents: those of one tenant together, in one transaction, because
only one writer at a time may update a tenant's counts."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.documents import counts
from penstock.adapters.postgres.documents.counts import VersionChange
from penstock.adapters.sql import documents, serving
from penstock.errors import QueueError
from penstock.ports.documents import Version

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
        await counts.replace(tx, tenant, list(moves.values()))
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
