"""Snapshots of answers at a version of their log; one read serves all waiters."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from penstock.answers.jobs import log_of
from penstock.engine.waiters import Waiters
from penstock.errors import AnswerNotFound, StoreUnavailable
from penstock.model.answer import Answer
from penstock.ports.answers import AnswerStore
from penstock.ports.queue import JobQueue

log = logging.getLogger("penstock.answers")

NEXT_WAIT = 50.0

Key = tuple[str, str, int]


@dataclass(slots=True, frozen=True)
class AnswerView:
    """An answer, and the version of its log at which it stood so."""

    answer: Answer
    version: int

    @property
    def next_poll(self) -> float | None:
        """How long to wait for a change; None: there will be none."""
        return None if self.answer.over else NEXT_WAIT

    def as_dict(self) -> dict[str, Any]:
        """A JSON-ready form: the same over HTTP, MCP and on the command line."""
        known = self.answer.as_dict()
        return {
            "answer_id": known.pop("id"),
            **known,
            "version": self.version,
            "next_poll": self.next_poll,
        }


class AnswerSnapshots:
    def __init__(self, queue: JobQueue, store: AnswerStore) -> None:
        self._queue = queue
        self._store = store
        self._waiters: Waiters[Key, AnswerView] = Waiters(queue, self._changed)

    async def close(self) -> None:
        await self._waiters.close()

    async def get(self, tenant: str, answer: str) -> AnswerView:
        """The answer now."""
        # The version first: what changes after it is told again.
        (version,) = await self._queue.versions([(tenant, log_of(answer))])
        return await self._read(tenant, answer, version)

    async def after(
        self, tenant: str, answer: str, version: int, timeout: float
    ) -> AnswerView | None:
        """The answer once its version is over that; None: it was not in this time."""
        try:
            return await self._waiters.wait((tenant, answer, version), timeout)
        except TimeoutError:
            return None

    async def _changed(self, keys: list[Key]) -> dict[Key, AnswerView]:
        answers = list({key[:2] for key in keys})
        logs = [(tenant, log_of(answer)) for tenant, answer in answers]
        newest = dict(zip(answers, await self._queue.versions(logs), strict=True))
        changed = [key for key in keys if newest[key[:2]] > key[2]]
        read = await asyncio.gather(
            *(self._try(*one, newest[one]) for one in {key[:2] for key in changed})
        )
        found = {(one.answer.tenant, one.answer.id): one for one in read if one}
        return {key: found[key[:2]] for key in changed if key[:2] in found}

    async def _try(self, tenant: str, answer: str, version: int) -> AnswerView | None:
        try:
            return await self._read(tenant, answer, version)
        except StoreUnavailable as error:  # whoever waits is told when it is back
            log.debug("cannot check for waiters: %s", error)
            return None

    async def _read(self, tenant: str, answer: str, version: int) -> AnswerView:
        found = await self._store.get(tenant, answer)
        if found is None:
            raise AnswerNotFound(answer)
        return AnswerView(found, version)
