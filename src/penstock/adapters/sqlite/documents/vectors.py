"""Vectors by hash of their text, searched exactly, in memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.adapters.sql.dialect import Sql
from penstock.errors import QueueError
from penstock.model.document import Hit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PORTION = 4096
"""Vectors read at a time."""
GROWTH = 1.5
"""How much larger the matrix is made than what it must hold."""


class _Rows(NamedTuple):
    """Arrays of the same length, of which the first rows are in use."""

    vectors: npt.NDArray[np.float32]
    chunks: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]


async def put(tx: Sql, tenant: str, model: str, vectors: Mapping[str, bytes]) -> None:
    for width in {len(vector) // 4 for vector in vectors.values()}:
        await _check_width(tx, model, width)
    of = {"tenant": tenant, "model": model}
    rows = [of | {"hash": name, "vector": vector} for name, vector in vectors.items()]
    await tx.execute_many("put_vector", rows)


async def _check_width(tx: Sql, model: str, width: int) -> None:
    """The first vector of a model says how long all of them are."""
    await tx.execute("add_model", model=model, dimensions=width)
    (known,) = await tx.one("model_dimensions", model=model)
    if known != width:
        raise QueueError(f"a vector of {model} has {width} dimensions, the others {known}")


class Matrix:
    """The live vectors of one tenant and model, in memory. It follows the snapshot it is asked
    to search by increments, so that what another process has published is found too.

    Rows are in no order. Those of a document that has changed are taken out and its new ones
    put in; the last rows fill the gaps.
    """

    def __init__(self, tenant: str, model: str) -> None:
        self._tenant, self._model = tenant, model
        self._version = -1
        self._count = 0
        self._rows: _Rows | None = None

    def search(self, vector: bytes, documents: Sequence[int] | None, limit: int) -> list[Hit]:
        """The `limit` chunks most like `vector`, of these documents or of all, in the snapshot
        that was followed last."""
        import numpy as np

        if self._rows is None or not self._count:
            return []
        vectors, chunks = self._rows.vectors[: self._count], self._rows.chunks[: self._count]
        query = np.frombuffer(vector, dtype="<f4")
        if query.shape[0] != vectors.shape[1]:
            raise QueueError(
                f"the query has {query.shape[0]} dimensions, the documents {vectors.shape[1]}"
            )
        if documents is not None:
            some = np.flatnonzero(np.isin(self._rows.documents[: self._count], documents))
            vectors, chunks = vectors[some], chunks[some]
        if not len(chunks):
            return []
        # Not `@`: its threads wait for each other, and on busy cores that took twice as long.
        scores = np.einsum("ij,j->i", vectors, query)
        most = min(limit, len(scores))
        best = np.argpartition(scores, len(scores) - most)[-most:]
        # Equal scores in the order of their numbers: the same question has the same answer.
        best = best[np.lexsort((chunks[best], -scores[best]))]
        return [Hit(int(n), float(s)) for n, s in zip(chunks[best], scores[best], strict=True)]

    def follow(self, connection: sqlite3.Connection) -> None:
        """Bring the matrix to what is live in this snapshot."""
        first, last = connection.execute(
            "SELECT coalesce((SELECT min(version) FROM publications), 0),"
            " coalesce((SELECT max(version) FROM publications), 0)"  # in one they would be a scan
        ).fetchone()
        if self._version == last:
            return
        if self._rows is None or self._version < first - 1:
            self._count = 0
            self._add(connection, "documents")
        else:
            found = connection.execute(
                "SELECT DISTINCT document FROM publications WHERE version > ? AND tenant = ?",
                (self._version, self._tenant),
            ).fetchall()
            numbers = [document for (document,) in found]
            self._remove(self._rows, numbers)
            some = "json_each(?) AS some CROSS JOIN documents ON documents.number = some.value"
            self._add(connection, some, json.dumps(numbers))
        self._version = last

    def _remove(self, rows: _Rows, documents: Sequence[int]) -> None:
        import numpy as np

        gone = np.flatnonzero(np.isin(rows.documents[: self._count], documents))
        left = self._count - gone.size
        gaps = gone[gone < left]
        movers = np.setdiff1d(np.arange(left, self._count), gone, assume_unique=True)
        for array in (rows.vectors, rows.chunks, rows.documents):
            array[gaps] = array[movers]
        self._count = left

    def _add(self, connection: sqlite3.Connection, documents: str, *parameters: str) -> None:
        import numpy as np

        # CROSS: in this order. By itself SQLite goes through all vectors for one document.
        found = connection.execute(
            f"SELECT chunks.number, chunks.document, vectors.vector FROM {documents}"
            " CROSS JOIN chunks ON chunks.document = documents.number"
            " AND chunks.generation = documents.live"
            " CROSS JOIN vectors ON vectors.tenant = documents.tenant"
            " AND vectors.hash = chunks.hash"
            " WHERE documents.tenant = ? AND vectors.model = ?",
            (*parameters, self._tenant, self._model),
        )
        # In portions: all at once would be in memory three times over.
        while some := found.fetchmany(PORTION):
            numbers, owners, packed = zip(*some, strict=True)
            vectors = np.frombuffer(b"".join(packed), dtype="<f4").reshape(len(some), -1)
            end = self._count + len(some)
            rows = self._rows = self._with_room(end, vectors.shape[1])
            rows.vectors[self._count : end] = vectors
            rows.chunks[self._count : end] = numbers
            rows.documents[self._count : end] = owners
            self._count = end

    def _with_room(self, count: int, width: int) -> _Rows:
        """The rows there are, in arrays that hold `count`."""
        import numpy as np

        if self._rows is not None and len(self._rows.chunks) >= count:
            return self._rows
        size = max(1024, int(count * GROWTH))
        rows = _Rows(
            np.empty((size, width), np.float32), np.empty(size, np.int64), np.empty(size, np.int64)
        )
        if self._rows is not None:
            rows.vectors[: self._count] = self._rows.vectors[: self._count]
            rows.chunks[: self._count] = self._rows.chunks[: self._count]
            rows.documents[: self._count] = self._rows.documents[: self._count]
        return rows
