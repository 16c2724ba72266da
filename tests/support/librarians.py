"""A librarian that does as it is told, in this process or behind gRPC in another.

The plan's queries are its script, a step each:

    round            a round with one passage
    wait             until the errand ends
    block            until it is cancelled
    wait:0.2         so many seconds, ended by the errand's end
    busy:llm.search  that lane gives no permit
    gone:llm.search  what is asked in that lane cannot be reached
    limited:NAME, refused:NAME, invalid, bug
    ask:URL          a request by way of `asking.http`, in the lane `model`
    huge             a round that is too large
    big:N            a round with N passages of 1,000 characters

What it does is noted in a file that the test reads.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import (
    AuthenticationError,
    LaneBusy,
    RateLimited,
    Unavailable,
    ValidationError,
)
from penstock.model.answer import Evidence, Plan, Round
from penstock.ports.librarian import MAX_ROUNDS, Errand
from penstock.ports.provider import ProviderContext

PASSAGE = Evidence(
    number=1,
    collection="notes",
    document="tides.md",
    title="潮汐 — tides",
    source="file:///tides.md",
    chunk=3,
    start=10,
    end=42,
    pages=(2, 3),
    text="The moon pulls the sea. 月は海を引く。 달이 바다를 당긴다.",
    score=0.5,
    query="tides",
    round=1,
)


class Diary:
    """Lines that one process writes and another reads."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, **data: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"what": what, "at": time.time(), **data}) + "\n")

    def notes(self, what: str) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line for line in lines if line["what"] == what]


def errand(*steps: str, ends_at: float, **options: Any) -> Errand:
    return Errand("acme", "What pulls the sea?", Plan(steps, "one passage"), ends_at, **options)


class ScriptedLibrarian:
    """See `penstock.ports.librarian.Librarian`."""

    lane = None

    def __init__(self, diary: Diary, now: Callable[[], float]) -> None:
        self._diary = diary
        self._now = now

    async def close(self) -> None:
        pass

    async def search(self, asking: ProviderContext, errand: Errand) -> AsyncGenerator[Round, None]:
        left = errand.ends_at - self._now()
        self._diary.note(
            "began",
            tenant=errand.tenant,
            asking=asking.tenant,
            left=left,
            remaining=asking.remaining(),
            found=[one.number for one in errand.found],
            collections=errand.collections,
        )
        number = errand.rounds_done
        try:
            for step in errand.plan.queries:
                if self._now() >= errand.ends_at or number >= MAX_ROUNDS:
                    break
                turn = await self._do(asking, errand, step, number + 1)
                if turn is not None:
                    number += 1
                    self._diary.note("round", number=number)
                    yield turn
            self._diary.note("ended")
        except asyncio.CancelledError:
            self._diary.note("cancelled")
            raise
        except GeneratorExit:
            self._diary.note("closed")
            raise

    async def _do(
        self, asking: ProviderContext, errand: Errand, step: str, number: int
    ) -> Round | None:
        what, _, value = step.partition(":")
        match what:
            case "round":
                return _round(number)
            case "huge":
                return replace(_round(number), note="x" * 200_000)
            case "big":
                some = (
                    replace(PASSAGE, number=n, text="x" * 1000, round=number)
                    for n in range(1, int(value) + 1)
                )
                return replace(_round(number), evidence=tuple(some))
            case "wait":
                self._diary.note("waits")
                seconds = float(value) if value else 1e6
                await asyncio.sleep(min(seconds, max(0.0, errand.ends_at - self._now())))
                return None
            case "block":
                self._diary.note("waits")
                await asyncio.Event().wait()
            case "ask":
                self._diary.note("asks")
                await asking.http.get(value, lane="model")
                return None
            case "invalid":
                raise ValidationError("no such collection")
            case "bug":
                raise ZeroDivisionError("a secret")
            case "busy":
                raise LaneBusy(value, self._now() + 7, "its breaker is open")
        failure: Unavailable | AuthenticationError
        match what:
            case "gone":
                failure = Unavailable("model: ConnectError")
            case "limited":
                failure = RateLimited("model: HTTP 429", 9.0)
            case "refused":
                failure = AuthenticationError("model: HTTP 401")
            case _:
                raise AssertionError(f"no such step: {step}")
        failure.lane = value
        raise failure


def _round(number: int) -> Round:
    passage = replace(PASSAGE, number=number, round=number)
    return Round(
        number, ("tides", "潮汐"), (passage,), ("the sun",), number > 1, "a note", ("moon",)
    )
