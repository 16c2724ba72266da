"""Snapshots of answers at a version of their log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.adapters.sql.answers import AnswerStore
from penstock.answers.jobs import log_of
from penstock.engine.snapshots import SnapshotWaiters
from penstock.errors import AnswerNotFound
from penstock.model.answer import Answer
from penstock.ports.queue import JobQueue
from penstock.wire.answers import AnswerAtVersion, details_of

NEXT_WAIT = 50.0


@dataclass(slots=True, frozen=True)
class AnswerView:
    """An answer, as of a version of its log."""

    answer: Answer
    version: int

    @property
    def next_poll(self) -> float | None:
        """Recommended wait for a change; None: there will be none."""
        return None if self.answer.over else NEXT_WAIT

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-ready form: the same over HTTP, MCP and on the command line."""
        more = {"version": self.version, "next_poll": self.next_poll}
        return details_of(self.answer, AnswerAtVersion, **more).as_dict()


class AnswerSnapshots(SnapshotWaiters[AnswerView]):
    def __init__(self, queue: JobQueue, store: AnswerStore) -> None:
        super().__init__(queue)
        self._store = store

    def log_of(self, name: str) -> str:
        return log_of(name)

    async def read(self, tenant: str, name: str, version: int) -> AnswerView:
        found = await self._store.get(tenant, name)
        if found is None:
            raise AnswerNotFound(name)
        return AnswerView(found, version)
