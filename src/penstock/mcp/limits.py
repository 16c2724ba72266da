"""Splits results to fit a model's context; a cursor gives the rest."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.wire.view import WireView, plain

MAX_CHARACTERS = 20_000
"""Of one answer, as JSON. Clients begin to cut by themselves, and without a cursor, soon after."""

Answered = TypeVar("Answered", bound=WireView)


async def fitting(ask: Callable[[int], Awaitable[Answered]], limit: int) -> Answered:
    """What `ask(limit)` answers, with fewer items than `limit` where these are too large. One item
    is always given, however large."""
    answer = await ask(limit)
    while limit > 1 and (size := _characters(answer)) > MAX_CHARACTERS:
        limit = max(1, min(limit - 1, limit * MAX_CHARACTERS // size))
        answer = await ask(limit)
    return answer


def _characters(answer: WireView) -> int:
    return len(json.dumps(answer, default=plain, ensure_ascii=False, separators=(",", ":")))
