"""The embedding model in use, and the switch from one to another."""

from __future__ import annotations

import sqlite3

from penstock.adapters.sqlite.database import Transaction
from penstock.errors import ModelReplaced
from penstock.ports.documents import ServingModel, ToEmbed

Queryable = Transaction | sqlite3.Connection

WITHOUT_VECTOR = (
    " FROM documents JOIN chunks ON chunks.document = documents.number"
    " AND chunks.generation = documents.live WHERE NOT EXISTS (SELECT 1 FROM vectors"
    " WHERE vectors.tenant = documents.tenant AND model = ? AND vectors.hash = chunks.hash)"
)


def read(tx: Queryable) -> ServingModel:
    return ServingModel(*tx.execute("SELECT model, next, number FROM serving").fetchone())


def use(tx: Transaction, model: str) -> None:
    """Called when a document is published with vectors of `model`."""
    serving = read(tx)
    if serving.model is None:
        tx.execute("UPDATE serving SET model = ?", (model,))
    elif model not in (serving.model, serving.next):
        raise ModelReplaced(f"documents are embedded by {serving.next or serving.model} now")


def want(tx: Transaction, model: str) -> None:
    serving = read(tx)
    if serving.model is None:
        return
    following = None if model == serving.model else model
    tx.execute("UPDATE serving SET next = ?, number = number + 1", (following,))


def to_reembed(connection: sqlite3.Connection, model: str, limit: int) -> list[tuple[str, ToEmbed]]:
    rows = connection.execute(
        f"SELECT DISTINCT documents.tenant, chunks.hash, chunks.text {WITHOUT_VECTOR} LIMIT ?",
        (model, limit),
    )
    return [(tenant, ToEmbed(name, text)) for tenant, name, text in rows]


def serve(tx: Transaction, model: str) -> bool:
    if read(tx).next != model:
        return False
    if tx.execute(f"SELECT 1 {WITHOUT_VECTOR} LIMIT 1", (model,)).fetchone() is not None:
        return False
    tx.execute("UPDATE serving SET model = next, next = NULL")
    # A gap in the publications: whoever has vectors in memory reads them all anew.
    tx.execute("DELETE FROM publications")
    for _ in range(2):
        tx.execute("INSERT INTO publications (tenant, document) VALUES ('', 0)")
    tx.execute("DELETE FROM publications WHERE version < (SELECT max(version) FROM publications)")
    return True
