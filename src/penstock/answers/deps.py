"""Dependencies of the answer jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.adapters.sql.answers import AnswerStore
from penstock.answers import jobs, prompts
from penstock.answers.jobs import Enqueue
from penstock.documents.service import Documents
from penstock.errors import ModelError
from penstock.model.answer import Answer, Phase
from penstock.model.job import Priority
from penstock.ports.language_model import Effort, LanguageModel, Message
from penstock.ports.librarian import Librarian
from penstock.ports.provider import ProviderContext
from penstock.ports.queue import JobQueue
from penstock.research.service import Research


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
        return await self.documents.masked_reason(error)


def with_note(notes: Sequence[str], note: str) -> tuple[str, ...]:
    """Add a note, unless it is there already."""
    return tuple(dict.fromkeys([*notes, note] if note else notes))


T = TypeVar("T")


async def asked_twice(
    model: LanguageModel,
    asking: ProviderContext,
    messages: Sequence[Message],
    read: Callable[[str], T],
    *,
    most: int,
    effort: Effort,
) -> T:
    """Ask a model and parse its reply with `read`. If it cannot be parsed, the model is asked once
    more, with its reply; raises ModelError if that fails too."""
    said = await model.complete(asking, messages, most=most, effort=effort)
    try:
        return read(said)
    except ModelError:
        messages = prompts.again(messages, said)
        return read(await model.complete(asking, messages, most=most, effort=effort))
