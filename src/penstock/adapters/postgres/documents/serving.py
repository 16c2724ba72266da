"""The embedding model in use, and the switch from one to another."""

from __future__ import annotations

from penstock.adapters.postgres.database import Connection, Database, Transaction
from penstock.errors import ModelReplaced
from penstock.ports.documents import ServingModel, ToEmbed

_READ = "SELECT model, next, number FROM penstock.serving"
_WITHOUT_VECTOR = (
    " FROM penstock.documents AS d JOIN penstock.chunks AS c ON c.document = d.number"
    " AND c.generation = d.live WHERE NOT EXISTS (SELECT 1 FROM penstock.vectors AS v"
    " WHERE v.tenant = c.tenant AND v.hash = c.hash"
    " AND v.model = (SELECT number FROM penstock.models WHERE name = $1))"
)


async def read(database: Database, connection: Connection) -> ServingModel:
    return ServingModel(*await connection.fetchrow(database.sql(_READ)))


async def use(tx: Transaction, model: str) -> None:
    """Called when a document is published with vectors of `model`."""
    if ServingModel(*await tx.fetchrow(_READ)).model is None:
        # Before the lock below: two who share it and then want to write wait for each other.
        await tx.execute("UPDATE penstock.serving SET model = $1 WHERE model IS NULL", model)
    serving = ServingModel(*await tx.fetchrow(f"{_READ} FOR SHARE"))
    if model not in (serving.model, serving.next):
        raise ModelReplaced(f"documents are embedded by {serving.next or serving.model} now")


async def want(tx: Transaction, model: str) -> None:
    serving = ServingModel(*await tx.fetchrow(f"{_READ} FOR UPDATE"))
    if serving.model is None:
        return
    following = None if model == serving.model else model
    await tx.execute("UPDATE penstock.serving SET next = $1, number = number + 1", following)


async def to_reembed(
    database: Database, connection: Connection, model: str, limit: int
) -> list[tuple[str, ToEmbed]]:
    rows = await connection.fetch(
        database.sql(f"SELECT DISTINCT d.tenant, c.hash, c.text {_WITHOUT_VECTOR} LIMIT $2"),
        model,
        limit,
    )
    return [(row["tenant"], ToEmbed(row["hash"], row["text"])) for row in rows]


async def serve(tx: Transaction, model: str) -> bool:
    serving = ServingModel(*await tx.fetchrow(f"{_READ} FOR UPDATE"))
    if serving.next != model:
        return False
    if await tx.fetchval(f"SELECT EXISTS (SELECT 1 {_WITHOUT_VECTOR})", model):
        return False
    await tx.execute("UPDATE penstock.serving SET model = next, next = NULL")
    return True
