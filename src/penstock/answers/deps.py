"""Dependencies of the answer jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.answers import jobs
from penstock.answers.jobs import Enqueue
from penstock.documents.service import Documents
from penstock.errors import PenstockError
from penstock.model.answer import Answer, Phase
from penstock.model.job import Priority
from penstock.ports.answers import AnswerStore
from penstock.ports.language_model import LanguageModel
from penstock.ports.librarian import Librarian
from penstock.ports.queue import JobQueue
from penstock.research.service import Research

REASON_LIMIT = 500


@dataclass(slots=True, frozen=True)
class AnswerDeps:
    queue: JobQueue
    store: AnswerStore
    documents: Documents
    research: Research
    enqueue: Enqueue
    librarian: Librarian
    unaided: Librarian
    """Librarian that searches once, without a model."""
    models: Mapping[Phase, LanguageModel]
    """Models by phase; a phase without one is done without a model."""
    loop_seconds: float
    evidence_tokens: int

    def now(self) -> float:
        return self.queue.now()

    async def note(self, answer: Answer, what: str, data: Mapping[str, Any]) -> None:
        await self.queue.note(answer.tenant, jobs.log_of(answer.id), what, data)

    async def start(self, answer: Answer, priority: Priority) -> None:
        await jobs.start(self.enqueue, answer, self.now(), self.loop_seconds, priority)

    async def close(self, answer: Answer) -> None:
        await jobs.close(self.enqueue, answer)

    async def is_down(self, lane: str | None) -> bool:
        """Whether the service of a lane is unreachable or blocked."""
        lanes = {one.name: one for one in await self.queue.lanes()}
        own = lanes.get(lane or "")
        concerned = [own, lanes.get(own.parent or "")] if own is not None else []
        return any(
            one is not None and (one.breaker == "open" or one.blocked_why is not None)
            for one in concerned
        )

    async def unread(self, answer: Answer) -> str:
        """Note that documents are still being processed: otherwise somebody who asks right after an
        upload might take the result for complete."""
        count = await self.documents.in_progress(answer.tenant, answer.collections)
        if not count:
            return ""
        some = "1 document was" if count == 1 else f"{count:,} documents were"
        return f"{some} still being processed during the search: ask again when it is done"

    async def masked(self, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(await self.documents.mask(texts))

    async def reason(self, error: BaseException) -> str:
        """Format an error for people, without internals."""
        said = str(error) or type(error).__name__
        if not isinstance(error, PenstockError):
            said = f"{type(error).__name__}: {said}"
        (masked,) = await self.masked([said])
        return masked[:REASON_LIMIT]


def with_note(notes: Sequence[str], note: str) -> tuple[str, ...]:
    """Add a note, unless it is there already."""
    return tuple(dict.fromkeys([*notes, note] if note else notes))
