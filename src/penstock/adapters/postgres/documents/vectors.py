"""Vectors by hash of their text, with an index for each model."""

from __future__ import annotations

import array
import sys
from collections.abc import Mapping
from typing import NamedTuple

from penstock.adapters.postgres.database import Connection, Database, Transaction
from penstock.adapters.postgres.documents.schema import PGVECTOR_PATH
from penstock.adapters.postgres.documents.scope import Extent, Filter
from penstock.adapters.sql import unused_vectors
from penstock.adapters.sql.unused_vectors import Key
from penstock.errors import QueueError
from penstock.model.document import Hit
from penstock.ports.documents import DocumentQuery

BEFORE_ALL = (-1, -1, "")
"""Before the key of every vector."""
MAX_DIMENSIONS = 4000
"""Of vectors that pgvector can index in half precision."""
FEW = 2000
"""So many are compared one by one, which is exact and takes about 13 ms at 512 dimensions."""
STEP_COST = 5
"""What a step through the index costs, in comparisons one by one. Roughly: 33 us to 7 us at 512
dimensions, for one tenant."""

COMPARED = 200_000
"""So many are compared one by one where the index did not find enough: some 1.5 s."""


def floats(vector: bytes) -> list[float]:
    """A vector, or several one after the other, as the driver takes it."""
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


async def add_model(tx: Transaction, model: str, dimensions: int) -> int:
    """The number of a model. The first who uses it makes its index."""
    known = await _model(tx.database, tx.connection, model)
    if known is None:
        if dimensions > MAX_DIMENSIONS:
            raise QueueError(
                f"{model} makes vectors of {dimensions} dimensions; PostgreSQL can search at most "
                f"{MAX_DIMENSIONS}"
            )
        await tx.execute("SELECT penstock.add_model_1($1, $2)", model, dimensions)
        known = await _model(tx.database, tx.connection, model)
    assert known is not None
    number, width = known
    if width != dimensions:
        raise QueueError(f"a vector of {model} has {dimensions} dimensions, the others {width}")
    return number


async def _model(database: Database, connection: Connection, name: str) -> tuple[int, int] | None:
    """A model's number and dimensions."""
    row = await connection.fetchrow(
        database.sql("SELECT number, dimensions FROM penstock.models WHERE name = $1"), name
    )
    return None if row is None else (row["number"], row["dimensions"])


async def put(
    tx: Transaction, tenant: int, model: int, width: int, vectors: Mapping[str, bytes]
) -> None:
    await tx.execute(PGVECTOR_PATH)
    every = floats(b"".join(vectors.values()))
    await tx.execute("put_vectors", tenant, model, list(vectors), every, width)


_LOCK = "hashtextextended('penstock vectors ' || 'penstock.vectors'::regclass::oid, 0)"


async def keep(tx: Transaction) -> None:
    """Until this transaction ends, no vector is deleted. What is staged while vectors are being
    deleted would count on some of them: so whoever stages holds a lock that those who stage share,
    and whoever deletes has it alone."""
    await tx.execute(f"SELECT pg_advisory_xact_lock_shared({_LOCK})")


async def purge(tx: Transaction, after: Key, keep_seconds: float, limit: int) -> int:
    """See `unused_vectors.purge`; nothing is done while somebody stages."""
    if not await tx.fetchval(f"SELECT pg_try_advisory_xact_lock({_LOCK})"):
        return 0
    # Whoever wants another model waits until it is clear which vectors are left.
    await tx.execute("share_serving")
    return await unused_vectors.purge(tx, after, keep_seconds, limit)


async def near(
    database: Database, connection: Connection, wanted: DocumentQuery, where: Filter, extent: Extent
) -> list[Hit]:
    """The chunks most like the asked vector."""
    assert wanted.vector is not None
    model = await _model(database, connection, wanted.model)
    if model is None:
        return []
    number, dimensions = model
    query = floats(wanted.vector)
    if len(query) != dimensions:
        raise QueueError(f"the query has {len(query)} dimensions, the documents {dimensions}")
    vector, limit = (f"${len(where.values) + n}" for n in (1, 2))

    async def ask(way: _Way) -> list[Hit]:
        # The model is a literal: its index is used only if the condition is visible.
        rows = await connection.fetch(
            database.sql(
                f"SELECT number, -(vector <#> {vector}::real[]::vector) AS score"
                f" FROM (SELECT c.number, v.vector FROM {way.tables} WHERE {where.condition}"
                f" AND v.model = {number} AND v.tenant = {extent.tenant}"
                f" ORDER BY {way.order.replace('?', vector)} LIMIT {limit}) AS near"
            ),
            *where.values,
            query,
            wanted.limit,
        )
        # Equal scores in the order of their numbers: the same question has the same answer.
        hits = [Hit(row["number"], row["score"]) for row in rows]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk))

    if not one_by_one(extent, wanted.limit):
        hits = await ask(_by_index(dimensions))
        if len(hits) == wanted.limit or extent.within > COMPARED:
            return hits
        # Much that others have is nearer than what the scope leaves, and the index gave up on the
        # way to it.
    return await ask(_one_by_one(number))


class _Way(NamedTuple):
    """Where vectors are had from, and in what order; ? is the asked one."""

    tables: str
    order: str


def _by_index(dimensions: int) -> _Way:
    half = f"halfvec({dimensions})"
    return _Way(
        "penstock.vectors AS v JOIN penstock.chunks AS c"
        " ON c.tenant = v.tenant AND c.hash = v.hash"
        " JOIN penstock.documents AS d ON d.number = c.document AND d.live = c.generation",
        f"v.vector::{half} <#> ?::real[]::{half}",
    )


def _one_by_one(model: int) -> _Way:
    return _Way(
        "penstock.documents AS d CROSS JOIN LATERAL (SELECT * FROM penstock.chunks"
        " WHERE document = d.number AND generation = d.live OFFSET 0) AS c"
        " CROSS JOIN LATERAL (SELECT * FROM penstock.vectors WHERE tenant = c.tenant"
        f" AND model = {model} AND hash = c.hash OFFSET 0) AS v",
        "v.vector <#> ?::real[]::vector",
    )


def one_by_one(extent: Extent, limit: int) -> bool:
    """Whether comparing all that the scope leaves costs less than going through the index, which
    holds the vectors of all tenants, until enough of them are within the scope."""
    steps = limit * extent.all / max(extent.within, 1)
    return extent.within <= max(FEW, STEP_COST * steps)
