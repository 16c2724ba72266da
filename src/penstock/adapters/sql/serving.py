"""The embedding model in use, and the switch from one to another."""

from __future__ import annotations

from penstock.adapters.sql.dialect import Sql
from penstock.errors import ModelReplaced
from penstock.ports.documents import ServingModel


async def use(tx: Sql, model: str) -> None:
    """Called when a document is published with vectors of `model`."""
    if ServingModel(*await tx.one("read_serving")).model is None:
        # Before the lock below: two who share it and then want to write wait for each other.
        await tx.execute("serve_first", model=model)
    serving = ServingModel(*await tx.one("share_serving"))
    if model not in (serving.model, serving.next):
        raise ModelReplaced(f"documents are embedded by {serving.next or serving.model} now")


async def want(tx: Sql, model: str) -> None:
    serving = ServingModel(*await tx.one("lock_serving"))
    if serving.model is not None:
        await tx.execute("want_model", next=None if model == serving.model else model)


async def serve(tx: Sql, model: str) -> bool:
    serving = ServingModel(*await tx.one("lock_serving"))
    if serving.next != model or await tx.one("any_to_reembed", model=model) is not None:
        return False
    await tx.execute("serve_next")
    return True
