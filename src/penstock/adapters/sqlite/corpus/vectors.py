"""Vectors: kept by what they are of, and searched in memory, exactly."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.adapters.sqlite.corpus.documents import number_of
from penstock.adapters.sqlite.database import Transaction
from penstock.model.document import Hit
from penstock.model.errors import QueueError
from penstock.ports.corpus import ToEmbed, Version

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]
    Ints = npt.NDArray[np.int64]

GROWTH = 1.5
"""How much larger the matrix is made than what it must hold."""


def to_embed(connection: sqlite3.Connection, version: Version, model: str) -> list[ToEmbed] | None:
    document = number_of(connection, version)
    if document is None:
        return None
    rows = connection.execute(
        "SELECT hash, text FROM chunks WHERE document = ? AND generation = ? AND NOT EXISTS"
        " (SELECT 1 FROM vectors WHERE tenant = ? AND model = ? AND vectors.hash = chunks.hash)"
        " GROUP BY hash ORDER BY min(ordinal)",
        (document, version.generation, version.ref.tenant, model),
    )
    return [ToEmbed(*row) for row in rows]


def put(tx: Transaction, tenant: str, model: str, vectors: Mapping[str, bytes]) -> None:
    tx.connection.executemany(
        "INSERT INTO vectors (tenant, model, hash, vector, used_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (tenant, model, hash) DO UPDATE SET used_at = excluded.used_at",
        [(tenant, model, name, vector, tx.now) for name, vector in vectors.items()],
    )


def without_vector(tx: Transaction, version: Version, model: str) -> int:
    """How many chunks of a version have no vector of `model`."""
    row = tx.execute(
        "SELECT count(*) FROM documents JOIN chunks ON chunks.document = documents.number"
        " AND chunks.generation = documents.generation"
        " WHERE (tenant, collection, id) = (?, ?, ?) AND documents.generation = ?"
        " AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.tenant = documents.tenant"
        " AND model = ? AND vectors.hash = chunks.hash)",
        (*version.ref, version.generation, model),
    ).fetchone()
    count: int = row[0]
    return count


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
        self._vectors: Floats | None = None
        self._chunks: Ints | None = None
        self._documents: Ints | None = None

    def search(
        self,
        connection: sqlite3.Connection,
        vector: bytes,
        documents: Sequence[int] | None,
        limit: int,
    ) -> list[Hit]:
        """The `limit` chunks most like `vector`, of these documents or of all."""
        import numpy as np

        self._follow(connection)
        if not self._count or self._vectors is None:
            return []
        assert self._chunks is not None
        assert self._documents is not None
        query = np.frombuffer(vector, dtype="<f4")
        if query.shape[0] != self._vectors.shape[1]:
            raise QueueError(
                f"the query has {query.shape[0]} dimensions, the corpus {self._vectors.shape[1]}"
            )
        rows: Any = np.arange(self._count)
        if documents is not None:
            rows = np.flatnonzero(np.isin(self._documents[: self._count], documents))
            if not rows.size:
                return []
            scores = self._vectors[rows] @ query
        else:
            scores = self._vectors[: self._count] @ query
        some = min(limit, scores.shape[0])
        best = np.argpartition(-scores, some - 1)[:some]
        # Equal scores in the order of their numbers: the same question has the same answer.
        order = np.lexsort((self._chunks[rows[best]], -scores[best]))
        best = best[order]
        numbers = self._chunks[rows[best]]
        return [Hit(int(n), float(s)) for n, s in zip(numbers, scores[best], strict=True)]

    def _follow(self, connection: sqlite3.Connection) -> None:
        """Bring the matrix to what is live in this snapshot."""
        first, last = connection.execute(
            "SELECT coalesce(min(version), 0), coalesce(max(version), 0) FROM publications"
        ).fetchone()
        if self._version == last:
            return
        if self._version < first - 1 or self._vectors is None:
            self._count = 0
            self._add(connection, None)
        else:
            rows = connection.execute(
                "SELECT DISTINCT document FROM publications WHERE version > ? AND tenant = ?",
                (self._version, self._tenant),
            ).fetchall()
            changed = [document for (document,) in rows]
            self._remove(changed)
            self._add(connection, changed)
        self._version = last

    def _remove(self, documents: Sequence[int]) -> None:
        import numpy as np

        assert self._vectors is not None
        assert self._chunks is not None
        assert self._documents is not None
        gone = np.flatnonzero(np.isin(self._documents[: self._count], documents))
        if not gone.size:
            return
        left = self._count - gone.size
        gaps = gone[gone < left]
        movers = np.setdiff1d(np.arange(left, self._count), gone, assume_unique=True)
        for array in (self._vectors, self._chunks, self._documents):
            array[gaps] = array[movers]
        self._count = left

    def _add(self, connection: sqlite3.Connection, documents: Sequence[int] | None) -> None:
        import numpy as np

        some = (
            "" if documents is None else " AND documents.number IN (SELECT value FROM json_each(?))"
        )
        parameters: list[Any] = [self._tenant, self._model]
        if documents is not None:
            parameters.append(json.dumps(list(documents)))
        rows = connection.execute(
            "SELECT chunks.number, chunks.document, vectors.vector FROM documents"
            " JOIN chunks ON chunks.document = documents.number"
            " AND chunks.generation = documents.live"
            " JOIN vectors ON vectors.tenant = documents.tenant AND vectors.hash = chunks.hash"
            f" WHERE documents.tenant = ? AND vectors.model = ?{some}",
            parameters,
        ).fetchall()
        if not rows:
            return
        width = len(rows[0][2]) // 4
        self._make_room(self._count + len(rows), width)
        assert self._vectors is not None
        assert self._chunks is not None
        assert self._documents is not None
        end = self._count + len(rows)
        self._vectors[self._count : end] = np.frombuffer(
            b"".join(row[2] for row in rows), dtype="<f4"
        ).reshape(len(rows), width)
        self._chunks[self._count : end] = [row[0] for row in rows]
        self._documents[self._count : end] = [row[1] for row in rows]
        self._count = end

    def _make_room(self, rows: int, width: int) -> None:
        import numpy as np

        if self._vectors is not None and self._vectors.shape[0] >= rows:
            return
        size = max(1024, int(rows * GROWTH))
        vectors = np.empty((size, width), dtype=np.float32)
        chunks, documents = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        if self._vectors is not None and self._count:
            assert self._chunks is not None
            assert self._documents is not None
            vectors[: self._count] = self._vectors[: self._count]
            chunks[: self._count] = self._chunks[: self._count]
            documents[: self._count] = self._documents[: self._count]
        self._vectors, self._chunks, self._documents = vectors, chunks, documents
