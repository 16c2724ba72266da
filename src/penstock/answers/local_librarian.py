"""The librarian in this process: searches the documents, asks a model whether the evidence is
sufficient, and searches again for what is missing.

Three rounds at most, and two more to recover where nothing was found or something is missing; none
begins after the errand's time, and no model is waited for beyond it. Without a model it looks once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from penstock.answers import prompts
from penstock.answers.deps import asked_twice
from penstock.answers.evidence import Gathered, not_found, within
from penstock.answers.prompts import Verdict
from penstock.documents.service import Documents
from penstock.errors import ModelError
from penstock.model.answer import Evidence, Round
from penstock.ports.language_model import Effort, LanguageModel
from penstock.ports.librarian import FIRST_ROUNDS, MAX_ROUNDS, Errand
from penstock.ports.provider import ProviderContext
from penstock.retrieval.search import Passage

PASSAGES = 8
"""Passages requested per query."""
LEAST_COSINE = 0.28
"""Minimum cosine similarity of a passage in another script, which only the vectors can have found:
with the offline embedder, those that answer have more. Other embedders yield higher values."""


class LocalLibrarian:
    """Implements `penstock.ports.librarian.Librarian`."""

    def __init__(
        self,
        documents: Documents,
        model: LanguageModel | None,
        now: Callable[[], float],
        evidence_tokens: int,
    ) -> None:
        self._documents = documents
        self._model = model
        self._now = now
        self._tokens = evidence_tokens

    @property
    def lane(self) -> str | None:
        return None if self._model is None else self._model.lane

    async def close(self) -> None:
        """Do nothing: it owns no resources."""

    async def search(self, asking: ProviderContext, errand: Errand) -> AsyncGenerator[Round, None]:
        gathered, number = Gathered(errand.found), errand.rounds_done
        queries = errand.plan.queries
        asked = {*queries, *errand.asked, *(one.query for one in errand.found)}
        missing: tuple[str, ...] = ()
        while queries and number < MAX_ROUNDS and self._now() < errand.ends_at:
            number += 1
            found, note = await self._look(asking, errand, queries)
            new = gathered.add(found, number)
            verdict = await self._judge(asking, errand, sorted(asked), gathered.all, number)
            if verdict.note and not verdict.missing:  # what the model said last still holds
                verdict = verdict._replace(missing=missing)
            missing = verdict.missing
            following = tuple(query for query in verdict.queries if query not in asked)
            if not goes_on(verdict, number, gathered.all):
                following = ()
            yield Round(
                number=number,
                queries=queries,
                evidence=tuple(new),
                missing=verdict.missing,
                enough=verdict.enough,
                note="; ".join(one for one in (note, verdict.note) if one),
                next=following,
            )
            queries = following
            asked.update(queries)

    async def _look(
        self, asking: ProviderContext, errand: Errand, queries: Sequence[str]
    ) -> tuple[list[tuple[str, list[Passage]]], str]:
        found: list[tuple[str, list[Passage]]] = []
        notes: list[str] = []
        for query in queries:
            left = max(0.0, min(errand.ends_at - self._now(), asking.remaining()))
            try:
                result = await self._documents.search(
                    query,
                    tenant=errand.tenant,
                    collections=errand.collections,
                    limit=PASSAGES,
                    seconds=left,
                )
            except TimeoutError:
                notes.append("the documents were not searched in time")
                break
            found.append((query, [one for one in result.passages if _is_near(one)]))
            notes.append(result.note)
        return found, "; ".join(dict.fromkeys(note for note in notes if note))

    async def _judge(
        self,
        asking: ProviderContext,
        errand: Errand,
        asked: Sequence[str],
        evidence: Sequence[Evidence],
        number: int,
    ) -> Verdict:
        plain = Verdict(enough=False, missing=not_found(errand.question, evidence))
        if self._model is None:
            return plain._replace(enough=not plain.missing and bool(evidence))
        effort: Effort = "medium" if number == MAX_ROUNDS else "low"
        shown = within(evidence, self._tokens)
        messages = prompts.judge_messages(errand.question, errand.plan, asked, shown)
        try:
            async with asyncio.timeout(max(0.0, errand.ends_at - self._now())):
                verdict = await asked_twice(
                    self._model,
                    asking,
                    messages,
                    prompts.read_verdict,
                    most=prompts.JUDGE_TOKENS,
                    effort=effort,
                )
                return await self._masked(verdict)
        except TimeoutError:
            return plain._replace(note="the model did not judge the evidence in time")
        except ModelError as error:
            return plain._replace(
                note=f"could not judge whether the evidence is sufficient: {error}"
            )

    async def _masked(self, verdict: Verdict) -> Verdict:
        """Mask a model's output, which may contain personal data that it was not given."""
        count = len(verdict.missing)
        masked = await self._documents.mask([*verdict.missing, *verdict.queries])
        return verdict._replace(missing=tuple(masked[:count]), queries=tuple(masked[count:]))


def goes_on(verdict: Verdict, number: int, evidence: Sequence[Evidence]) -> bool:
    """Whether there is another round."""
    if verdict.enough or number >= MAX_ROUNDS:
        return False
    return number < FIRST_ROUNDS or not evidence or bool(verdict.missing)


def _is_near(passage: Passage) -> bool:
    why = passage.why
    return not why.other_script or (why.vector_score or 0.0) >= LEAST_COSINE
