"""Wakes the workers once a caller's transaction is committed, of which SQLite tells nobody."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from penstock import runtime
from penstock.aio import end_tasks
from penstock.ports.queue import Topic

log = logging.getLogger("penstock.sqlite")
LOOK_SECONDS = 0.02
"""Between two looks whether jobs are there."""
WATCH_SECONDS = 60.0
"""A transaction that takes longer, or is rolled back: workers look by themselves all the time, if
not as often."""
MOST = 100
"""Jobs that are looked for at a time. A file has one writer, so older ones are of the same
transaction, or of one that has ended."""

Read = Callable[[Callable[[sqlite3.Connection], set[str]]], Awaitable[set[str]]]


class _Expected(NamedTuple):
    topics: set[Topic]
    until: float


class CommitWatch:
    """Looks for jobs in transactions of callers while there may be any, and no longer."""

    def __init__(self, read: Read, send: Callable[[set[Topic]], None]) -> None:
        self._read = read
        self._send = send
        self._expected: dict[str, _Expected] = {}
        """By the id of one job of each transaction: all of them come with it."""
        self._task: asyncio.Task[None] | None = None

    def expect(self, job_id: str, topics: set[Topic]) -> None:
        while len(self._expected) >= MOST:
            topics = topics | self._expected.pop(next(iter(self._expected))).topics
        self._expected[job_id] = _Expected(topics, runtime.monotonic() + WATCH_SECONDS)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name="penstock-commit-watch")

    async def close(self) -> None:
        """Look once more, and no more."""
        if self._task is not None:
            await end_tasks([self._task])
            await self._look()

    async def _watch(self) -> None:
        while self._expected:
            await asyncio.sleep(LOOK_SECONDS)
            await self._look()

    async def _look(self) -> None:
        ids = json.dumps(list(self._expected))
        found = "SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(?))"
        try:
            there = await self._read(lambda file: {row[0] for row in file.execute(found, (ids,))})
        except Exception as error:
            log.debug("cannot look for jobs of callers: %s", error)
            there = set()
        topics: set[Topic] = set()
        for job_id in there & self._expected.keys():
            topics |= self._expected.pop(job_id).topics
        now = runtime.monotonic()
        for job_id in [one for one, expected in self._expected.items() if expected.until < now]:
            del self._expected[job_id]
        if topics:
            self._send(topics)
