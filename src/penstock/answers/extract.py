"""An answer without a model: sentences of what was found, as they are, each with its citation."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from penstock.answers.evidence import covered
from penstock.answers.sentences import cited, sentences
from penstock.corpus.query import query_terms
from penstock.corpus.terms import index_terms, script
from penstock.ingest.lines import soft_breaks
from penstock.model.answer import Citation, Evidence

MOST_SENTENCES = 4
LONGEST = 600
"""Characters of one sentence: a table may be one without an end."""
LEAST_COVERED = 0.2
"""Of a passage: the share of the question's words that it has. In the benchmark nearly all that
answer have more, and what answers nothing has none. Scores do not tell: in a small corpus all are
small."""
BESIDE_BEST = 0.6
"""Of the best passage, and of the best sentence: what has less is left out."""

HEADING = re.compile(r"\s*#{1,6} ")
_STOP = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]\u300d\u300f]{0,4}\s*$")

FOREIGN = "what is quoted was found by its meaning alone: it is in another script"
NOTHING = {
    "han": "この質問に答える記述は見つかりませんでした。",
    "hangul": "이 질문에 답하는 내용을 찾지 못했습니다.",
}
NOTHING_ELSE = "Nothing was found that answers this question."


class Written(NamedTuple):
    """A text whose citations all resolve."""

    text: str
    citations: tuple[Citation, ...]
    note: str = ""
    """What the reader should know of it."""


class _Candidate(NamedTuple):
    worth: float
    evidence: Evidence
    start: int
    text: str


def extract(question: str, evidence: Sequence[Evidence]) -> Written:
    """The best sentences of the best passages, in the order of their numbers. Where no passage
    scored enough, it says that nothing was found."""
    chosen, note = _best(_candidates(question, evidence)), ""
    if not chosen:
        chosen, note = _foreign(question, evidence), FOREIGN
    if not chosen:
        return Written(nothing(question), ())
    chosen.sort(key=lambda one: (one.evidence.number, one.start))
    written = "\n".join(f"{one.text} [{one.evidence.number}]" for one in chosen)
    text, citations, _ = cited(written, {one.evidence.number for one in chosen})
    return Written(text, citations, note)


def nothing(question: str) -> str:
    """That nothing was found, in the question's language as far as its script tells."""
    return NOTHING.get(script(question), NOTHING_ELSE)


def _candidates(question: str, evidence: Sequence[Evidence]) -> list[_Candidate]:
    """The sentences of passages that have to do with the question, in its own script."""
    asked, own = set(query_terms(question).terms), script(question)
    shares = {one.number: covered(question, one) for one in evidence if script(one.text) == own}
    worth = {
        one.number: one.score + shares[one.number]
        for one in evidence
        if shares.get(one.number, 0.0) >= LEAST_COVERED
    }
    least = max(worth.values(), default=0.0) * BESIDE_BEST
    split = [
        (one, at, set(index_terms(one.text[slice(*at)])) & asked)
        for one in evidence
        if worth.get(one.number, -1.0) >= least
        for at in _telling(one)
    ]
    holding = Counter(term for _, _, terms in split for term in terms)
    # A word that most sentences have tells little.
    weights = {term: math.log(1 + len(split) / count) for term, count in holding.items()}
    return [
        _Candidate(
            worth[one.number] * sum(weights[term] for term in terms),
            one,
            at[0],
            _short(one.text[slice(*at)]),
        )
        for one, at, terms in split
    ]


def _best(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    ranked = sorted(candidates, key=lambda one: (-one.worth, one.evidence.number, one.start))
    chosen: dict[str, _Candidate] = {}
    for one in ranked:
        if one.worth < ranked[0].worth * BESIDE_BEST:
            break
        # Chunks overlap, and what one of them cuts the next has whole.
        if any(one.text in other for other in chosen):
            continue
        chosen = {text: other for text, other in chosen.items() if text not in one.text}
        if len(chosen) < MOST_SENTENCES:
            chosen[one.text] = one
    return list(chosen.values())


def _foreign(question: str, evidence: Sequence[Evidence]) -> list[_Candidate]:
    """Where the best passage is in another script its words cannot be those of the question: what
    it begins with, because it was found by its meaning."""
    best = max(evidence, key=lambda one: (one.score, -one.number), default=None)
    if best is None or script(best.text) in ("", script(question)):
        return []
    return [
        _Candidate(0.0, best, start, _short(best.text[start:end]))
        for start, end in _telling(best)[:2]
    ]


def _telling(one: Evidence) -> list[tuple[int, int]]:
    """Its sentences, without headings, which have the words of a question and answer nothing, and
    without the rest of a sentence that it begins with; unless there is nothing else."""
    found = _whole(one.text)
    telling = [at for at in found if not HEADING.match(one.text, at[0])]
    if one.start and telling and one.text[telling[0][0]].islower():
        telling = telling[1:] or telling
    return telling or found


def _whole(text: str) -> list[tuple[int, int]]:
    """Sentences, also those that go over several lines."""
    soft, whole = soft_breaks(text), list[tuple[int, int]]()
    for start, end in sentences(text):
        if whole and text.rfind("\n", whole[-1][1], start) in soft:
            goes_on = text[start].islower() or not _STOP.search(text, *whole[-1])
            start = whole.pop()[0] if goes_on else start
        whole.append((start, end))
    return whole


def _short(sentence: str) -> str:
    line = " ".join(sentence.split())
    return (
        line
        if len(line) <= LONGEST
        else f"{line[:LONGEST].rsplit(' ', 1)[0]} \N{HORIZONTAL ELLIPSIS}"
    )
