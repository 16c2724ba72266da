"""The port to the store of answers.

An adapter promises:
- every row belongs to a tenant, and nothing is read or changed without naming it;
- an answer that is over (completed, failed, cancelled) is never changed again: of two who end it,
  one does;
- whoever saves an answer has seen it as it is: of two who change it at the same time, one does.

Methods raise StoreUnavailable while the store cannot be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.model.answer import Answer


class AnswerStore(Protocol):
    """Usable while the store it is in is open."""

    async def create(self, answer: Answer) -> Answer:
        """Store an answer that is to be worked on; if there is one of this tenant and id, that one
        as it is."""
        ...

    async def get(self, tenant: str, answer: str) -> Answer | None: ...

    async def answers(self, tenant: str, limit: int, before: str | None = None) -> list[Answer]:
        """The newest first, without rounds; `before` is the id of the last one of the page
        before."""
        ...

    async def save(self, answer: Answer) -> Answer | None:
        """Store how far it has come; as it is then, which is what to save next. None: it is over
        already, or somebody else has saved it since it was read, and nothing was changed; or there
        is none."""
        ...

    async def running(
        self, before: float, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[Answer]:
        """Answers of all tenants that are running and were created before a time, in the order of
        tenant and id, without rounds: what a reconciler looks through. `after` is the tenant and
        id of the last one of the page before."""
        ...
