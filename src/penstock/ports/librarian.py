"""The port to the librarian, which searches for evidence: in this process, or as a separate
service.

It promises: at most `MAX_ROUNDS` rounds, and none that begins after `Errand.ends_at`; what was
found so far is given as it is found, so whoever loses the librarian in the middle keeps it; when
nobody listens any more, it stops.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from penstock.model.answer import Evidence, Plan, Round
from penstock.ports.provider import ProviderContext

LANE = "librarian"
"""In which one is asked that is a service of its own."""
FIRST_ROUNDS = 3
RECOVERY_ROUNDS = 2
"""More, if the first ones have not found what the plan asks for."""
MAX_ROUNDS = FIRST_ROUNDS + RECOVERY_ROUNDS


@dataclass(slots=True, frozen=True)
class Errand:
    """A search to carry out: for whom, and until when."""

    tenant: str
    question: str
    plan: Plan
    """Its queries are those of the next round."""
    ends_at: float
    """On the queue's clock."""
    collections: tuple[str, ...] | None = None
    found: tuple[Evidence, ...] = ()
    """By an earlier run, numbered."""
    rounds_done: int = 0
    asked: tuple[str, ...] = ()
    """Queries of those rounds, also such as found nothing."""


class Librarian(Protocol):
    @property
    def lane(self) -> str | None:
        """That a job which asks it is dispatched in. A job that asked from another lane could hold
        the slot that the search itself waits for."""
        ...

    def search(self, asking: ProviderContext, errand: Errand) -> AsyncGenerator[Round, None]:
        """The rounds as they end. The last one has what is missing, and whether it is enough.
        Unavailable where the librarian cannot be reached, or is lost. Whoever wants no more closes
        it (`aclosing`)."""
        ...

    async def close(self) -> None:
        """Let go of connections; it may be asked again all the same."""
        ...
