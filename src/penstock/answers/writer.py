"""Streams an answer while a model writes it, then validates the whole."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import replace

from penstock.answers import prompts
from penstock.answers.deps import AnswerDeps, with_note
from penstock.answers.evidence import within
from penstock.answers.extract import extract
from penstock.answers.sentences import cited, sentences, unsupported
from penstock.engine.context import JobContext
from penstock.errors import CutShort, ModelError
from penstock.model.answer import Answer, AnswerState, Phase
from penstock.ports.language_model import LanguageModel

PIECE_SECONDS = 0.1
"""Minimum interval between published pieces."""
LONGEST = 50_000
"""Maximum characters of an answer; a model that writes more has gone astray."""

CUT = "the model's answer was cut short"
REMOVED = "citations of nonexistent passages were removed"


class Writer:
    """One run of the writer. `ctx` tells runs apart: readers discard what an earlier one wrote."""

    def __init__(self, tools: AnswerDeps, ctx: JobContext, answer: Answer) -> None:
        self._tools = tools
        self._ctx = ctx
        self._answer = answer
        self._numbers = {one.number for one in answer.evidence}

    async def by_model(self, model: LanguageModel) -> Answer:
        """Have the model write the answer. Raises ModelError if it is unusable."""
        answer, tools = self._answer, self._tools
        shown = within(answer.evidence, tools.evidence_tokens)
        messages = prompts.answer_messages(answer.question, answer.missing, shown)
        await self._begin("model")
        written, told, looked_at, cut = "", 0, 0.0, False
        stream = model.stream(self._ctx, messages, most=prompts.ANSWER_TOKENS, effort="low")
        try:
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    written += piece
                    if len(written) > LONGEST:
                        raise ModelError(f"{model.name} wrote more than {LONGEST:,} characters")
                    if time.monotonic() - looked_at >= PIECE_SECONDS:
                        whole = _whole(written, told)
                        if whole > told:
                            await self._tell(written[told:whole])
                        told, looked_at = whole, time.monotonic()
        except CutShort:
            cut = True
        if not written.strip():
            raise ModelError(f"{model.name} wrote nothing")
        if told < len(written):
            await self._tell(written[told:])
        (masked,) = await tools.masked([written.strip()])
        text, citations, removed = cited(masked, self._numbers)
        done = replace(answer, text=text, citations=citations, mode="model")
        if cut:
            done = replace(done, notes=with_note(done.notes, CUT))
        if removed:
            done = replace(done, notes=with_note(done.notes, REMOVED))
        return _ended(replace(done, unsupported=unsupported(text, citations)), tools.now())

    async def extractive(self, why: str) -> Answer:
        """Build the answer from sentences of the evidence; `why` says why there is no better
        one."""
        answer = self._answer
        text, citations, note = extract(answer.question, answer.evidence)
        await self._begin("extractive")
        await self._tools.note(answer, "token", {"text": text, "attempt": self._ctx.token})
        done = replace(answer, text=text, citations=citations, mode="extractive")
        notes = with_note(with_note(done.notes, why), note)
        return _ended(replace(done, notes=notes), self._tools.now())

    async def _begin(self, mode: str) -> None:
        """Start the text over, discarding what was published before."""
        await self._tools.note(self._answer, "writing", {"attempt": self._ctx.token, "mode": mode})

    async def _tell(self, piece: str) -> None:
        (masked,) = await self._tools.masked([piece])
        text = cited(masked, self._numbers).text
        await self._tools.note(self._answer, "token", {"text": text, "attempt": self._ctx.token})


def _whole(written: str, told: int) -> int:
    """Return the complete sentences. Only those are published: masking and citations need whole
    ones."""
    begun = [start for start, _ in sentences(written[told:])]
    return told + begun[-1] if begun else told


def _ended(answer: Answer, now: float) -> Answer:
    """Finish the answer. A text without citations answers nothing: then all of the question is
    missing."""
    return replace(
        answer,
        state=AnswerState.COMPLETED,
        phase=Phase.DONE,
        missing=answer.missing or (() if answer.citations else (answer.question,)),
        finished_at=now,
    )
