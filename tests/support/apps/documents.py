"""An app with documents, which can be told to kill its process at a point of their way."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from penstock import JobContext, Penstock
from penstock.documents.jobs import EMBED, PARSE
from tests.support.side_effects import Side

FIRST, SECOND, THIRD = 1, 2, 3
STEPS = {
    "blob": ("blobs", "put", FIRST),
    "accept": ("documents", "accept", FIRST),
    "enqueue": ("service", "_enqueue", FIRST),
    "parse": ("parser", "ask", FIRST),
    "stage": ("documents", "stage", FIRST),
    "hand on": ("queue", "enqueue", FIRST),
    "first batch": ("documents", "put_vectors", FIRST),
    "second batch": ("documents", "put_vectors", SECOND),
    "third batch": ("documents", "put_vectors", THIRD),
    "publish": ("documents", "publish", FIRST),
    "blob deletion": ("blobs", "delete", FIRST),
}
FETCH_STEPS = {
    "address": ("blobs", "put", FIRST),
    "accept": ("documents", "accept", FIRST),
    "enqueue": ("service", "_enqueue", FIRST),
    "original": ("blobs", "put", SECOND),
    "arrival": ("documents", "fetched", FIRST),
    "hand over": ("queue", "enqueue", FIRST),
    "deletion of the address": ("blobs", "delete", FIRST),
    "fetched parse": ("parser", "ask", FIRST),
}
"""Of a document that is to be fetched, until it goes on as one that was uploaded."""


def build(url: str, side: Side, *, die: str = "", **settings: Any) -> Penstock:
    """`die` is "before" or "after" and the name of a step."""
    app = Penstock(url, **settings)
    documents = app.use("documents").documents

    @app.job("upload")
    async def upload(ctx: JobContext, name: str, text: str) -> None:
        """As a client does that tries again until it is told that the document is accepted."""
        await documents.add(text.encode(), id=name, title=name, metadata={"of": name})

    @app.job("upload_url")
    async def upload_url(ctx: JobContext, name: str, url: str) -> None:
        await documents.add_url(url, id=name, title=name, metadata={"of": name})

    @app.job("noop")
    async def noop(ctx: JobContext) -> None:
        """Needs nothing from anybody."""

    if die:
        when, _, step = die.partition(" ")
        owner, method, number = {**STEPS, **FETCH_STEPS}[step]
        tools = documents._tools
        owners = {"service": documents, "queue": app.queue}
        kind = PARSE if step in FETCH_STEPS else EMBED
        _kill(owners.get(owner) or getattr(tools, owner), method, when, number, kind)
    return app


def _kill(owner: Any, method: str, when: str, number: int, kind: str) -> None:
    """Let the number-th call of a method be the last thing this process does."""
    called: Callable[..., Awaitable[Any]] = getattr(owner, method)
    calls = 0

    async def last(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        # Of what goes into the queue only that is meant which one job hands to the next.
        calls += getattr(arguments[0], "kind", kind) == kind if arguments else 1
        if calls == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = await called(*arguments, **options)
        if calls == number and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, method, last)
