"""What the jobs of answers work with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.answers import jobs
from penstock.answers.jobs import Enqueue
from penstock.ingest.library import Library
from penstock.model.answer import Answer, Phase
from penstock.model.errors import PenstockError
from penstock.model.job import Priority
from penstock.ports.answers import AnswerStore
from penstock.ports.language_model import LanguageModel
from penstock.ports.librarian import Librarian
from penstock.ports.queue import JobQueue
from penstock.research.service import Research

REASON_LIMIT = 500


@dataclass(slots=True, frozen=True)
class Tools:
    queue: JobQueue
    store: AnswerStore
    library: Library
    research: Research
    enqueue: Enqueue
    librarian: Librarian
    unaided: Librarian
    """Who looks once, and asks no model."""
    models: Mapping[Phase, LanguageModel]
    """A phase that has none is done without."""
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

    async def masked(self, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(await self.library.mask(texts))

    async def reason(self, error: BaseException) -> str:
        """Why something went wrong, as it may be shown."""
        said = str(error) or type(error).__name__
        if not isinstance(error, PenstockError):
            said = f"{type(error).__name__}: {said}"
        (masked,) = await self.masked([said])
        return masked[:REASON_LIMIT]


def with_note(notes: Sequence[str], note: str) -> tuple[str, ...]:
    """Each note once."""
    return tuple(dict.fromkeys([*notes, note] if note else notes))
