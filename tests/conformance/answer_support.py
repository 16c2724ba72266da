"""Words shared by the conformance tests of answers. Everything goes through the port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from penstock.adapters.sql.answers import AnswerStore
from penstock.model.answer import Answer, Evidence, Round, Sources
from penstock.model.ids import new_id
from tests.conformance.access_support import STORES

TENANT = "default"
NOW = 1_700_000_000.0
"""The callers' clock: the store has none of its own."""


@asynccontextmanager
async def answers_at(name: str, url: str) -> AsyncIterator[AnswerStore]:
    """What another process with the same store would have."""
    store = STORES[name](url)
    await store.open()
    try:
        yield store.answers()
    finally:
        await store.close()


def an_answer(tenant: str = TENANT, **known: Any) -> Answer:
    basic: dict[str, Any] = {
        "tenant": tenant,
        "id": new_id(),
        "question": "why?",
        "sources": Sources.DOCUMENTS,
        "collections": None,
        "created_at": NOW,
        "ends_at": NOW + 90,
    }
    return Answer(**basic | known)


async def new_answer(store: AnswerStore, tenant: str = TENANT, **known: Any) -> Answer:
    return await store.create(an_answer(tenant, **known))


async def saved(store: AnswerStore, answer: Answer) -> Answer:
    after = await store.save(answer)
    assert after is not None
    return after


def a_round(number: int, text: str = "Water turns the wheel.") -> Round:
    evidence = Evidence(
        *(number, "default", "mill", "The mill", "/mill.txt", 3, 120, 142, (2, 3)),
        *(text, 0.75, "wheel", number, (130,)),
    )
    return Round(number, ("wheel", "mill"), (evidence,), ("who built it",), enough=False)
