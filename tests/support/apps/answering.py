"""An app that answers questions, which can be told to kill its process at a point of an answer's
way."""

from __future__ import annotations

import os
import signal
from typing import Any

from penstock import Penstock
from penstock.model.answer import Answer
from tests.support.side_effects import Side


def build(url: str, side: Side, *, die: str = "", **settings: Any) -> Penstock:
    """`die` is "before" or "after" and the number of a save: of the plan, of the first round, of
    the evidence as a whole, of the answer."""
    app = Penstock(url, **settings)
    store = app.use("answers").answers._tools.store
    if die:
        when, _, number = die.partition(" ")
        save, saves = store.save, 0

        async def last(answer: Answer) -> Answer | None:
            nonlocal saves
            saves += 1
            if saves == int(number) and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            after = await save(answer)
            if saves == int(number) and when == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return after

        store.save = last  # type: ignore[method-assign]
    return app
