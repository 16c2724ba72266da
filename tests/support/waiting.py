"""Waiting for conditions. Where time itself is the subject, `look_on` says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, overload

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds a condition may take to come true. Nothing is promised by it: only what never comes
true takes so long, and a busy machine may."""
PAUSE = 0.01


async def look_on(seconds: float) -> None:
    """Let time pass in which a test counts what happens, or whether anything does; there is no
    condition that could be waited for instead."""
    await asyncio.sleep(seconds)


@overload
async def until(
    condition: Callable[[], Coroutine[Any, Any, T | None]], what: str, patience: float = PATIENCE
) -> T: ...


@overload
async def until(condition: Callable[[], T | None], what: str, patience: float = PATIENCE) -> T: ...


async def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """The first true answer of `condition`; fails when patience ends."""
    give_up = time.monotonic() + patience
    while True:
        found = condition()
        if isinstance(found, Coroutine):
            found = await found
        if found:
            return found
        assert time.monotonic() < give_up, f"waited {patience:g} s in vain for {what}"
        await asyncio.sleep(PAUSE)
