"""How good answers without a model are: whether the passage they cite is the one that answers,
whether what they quote of it says so, and whether they say it where nothing does.

Questions of our own in three languages, put to the documents of `retrieval` in all three: those of
`retrieval` name the document that answers (each is one passage), those in `data/answers` also the
words in it that do.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import retrieval
from benchmarks.report import AtLeast, Better, Figure, Result
from benchmarks.sizes import Sizes
from penstock import Penstock
from penstock.model.answer import Answer

DATA = Path(__file__).parent / "data" / "answers"
LANGUAGES = ("en", "ja", "ko")
LEAST_CITED, LEAST_QUOTED, LEAST_HONEST = 0.85, 0.8, 0.7
"""Targets, of 1. Nobody publishes figures of the kind for answers without a model."""
SECONDS = 60.0
NAME = "answers without a model, own questions"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what answers it."""

    question: str
    documents: frozenset[str] = frozenset()
    holds: str = ""


def questions(language: str) -> list[Asked]:
    """Those that name a document."""
    rows = _lines(retrieval.DATA / "first" / f"questions.{language}.jsonl")
    return [Asked(row["question"], frozenset(row["relevant"])) for row in rows]


def labelled(language: str) -> list[Asked]:
    """Those that also name the words that answer."""
    rows = _lines(DATA / f"questions.{language}.jsonl")
    return [Asked(row["question"], frozenset([row["document"]]), row["holds"]) for row in rows]


def unanswerable() -> list[Asked]:
    return [Asked(row["question"]) for row in _lines(DATA / "unanswerable.jsonl")]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def cites(asked: Asked, answer: Answer) -> bool:
    """Whether a passage it cites is of a document that answers."""
    by_number = {one.number: one for one in answer.evidence}
    return any(by_number[one.number].document in asked.documents for one in answer.citations)


def quotes(asked: Asked, answer: Answer) -> bool:
    return cites(asked, answer) and asked.holds in answer.text


def is_honest(answer: Answer) -> bool:
    """Says of a question that has no answer that nothing was found."""
    return not answer.citations and bool(answer.missing)


async def answered(folder: Path, asked: Sequence[Asked]) -> tuple[list[Answer], float]:
    """The answers, and the seconds they took all together."""
    app = Penstock(f"sqlite:///{folder}/answers.db", durable=False)
    answers = app.use("answers").answers
    async with app.running():
        for language in LANGUAGES:
            for row in _lines(retrieval.DATA / "first" / f"documents.{language}.jsonl"):
                await app.documents.add(row["text"], id=row["id"])
        await app.drain(SECONDS)
        begun = time.perf_counter()
        made = [await answers.ask(one.question) for one in asked]
        ended = [await answers.wait(one.id, timeout=SECONDS) for one in made]
        return ended, time.perf_counter() - begun


def run(sizes: Sizes, folder: Path) -> list[Result]:
    sets = {language: questions(language) for language in (*LANGUAGES, "cross")}
    told = {language: labelled(language) for language in LANGUAGES}
    nothing = unanswerable()
    every = [one for group in (*sets.values(), *told.values(), nothing) for one in group]
    ended, seconds = asyncio.run(answered(folder, every))
    answers = iter(ended)
    results = [
        _share(
            f"{name}: {len(group)} questions whose cited passage is one that answers",
            [cites(one, next(answers)) for one in group],
            # Without words in common only meaning finds it: the best passage is all there is.
            None if name == "cross" else LEAST_CITED,
        )
        for name, group in sets.items()
    ]
    results += [
        _share(
            f"{name}: {len(group)} questions whose answer is in what is quoted",
            [quotes(one, next(answers)) for one in group],
            LEAST_QUOTED,
        )
        for name, group in told.items()
    ]
    results.append(
        _share(
            f"{len(nothing)} questions without an answer that get none",
            [is_honest(next(answers)) for _ in nothing],
            LEAST_HONEST,
        )
    )
    rate = Figure.of("penstock", [len(every) / seconds])
    results.append(Result(NAME, f"{len(every)} questions at once", "answers/s", rate))
    return results


def _share(what: str, right: Iterable[bool], least: float | None) -> Result:
    verdicts = list(right)
    return Result(
        NAME,
        what,
        "of 1",
        Figure.of("penstock", [sum(verdicts) / len(verdicts)]),
        better=Better.MORE,
        target=None if least is None else AtLeast(least, "of 1"),
    )
