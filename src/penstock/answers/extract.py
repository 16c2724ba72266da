"""Extractive answers: sentences quoted from the evidence, with citations, without a model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.answers.evidence import covered, shares, weights_of
from penstock.answers.question import parts_of, without_measures
from penstock.answers.sentences import cited, sentences
from penstock.documents.line_joins import soft_breaks
from penstock.model.answer import Citation, Evidence
from penstock.retrieval.query import query_terms
from penstock.retrieval.terms import TIE, index_terms, script

MAX_SENTENCES = 4
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
LONGEST = 600
"""Maximum characters of a sentence: a table may be one endless sentence."""
LEAST_COVERED = 0.2
"""Minimum share of the question's words in a passage. In the benchmark nearly all passages that
answer have more, and others have none. Scores do not help: in a small corpus all are small."""
BESIDE_BEST = 0.6
"""Minimum share of the best passage's and the best sentence's score."""

ABOVE = 0.35
"""Weight of a word that is in a heading above the sentence, and not in the sentence itself."""

HEADING = re.compile(r"^[ \t]*#{1,6} ", re.MULTILINE)
_STOP = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019\u00bb)\]\u300d\u300f]{0,4}\s*$")

FOREIGN = "the quoted text was found by meaning only: it is in another script"
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
    """Remark for the reader."""


class _Sentence(NamedTuple):
    at: tuple[int, int]
    said: set[str]
    """Words of the question in the sentence."""
    above: set[str]
    """Words of the question in the headings above it."""


class _Candidate(NamedTuple):
    worth: float
    evidence: Evidence
    start: int
    text: str


def extract(question: str, evidence: Sequence[Evidence]) -> Written:
    """Quote the best sentences of the best passages, in the order of their numbers. Says that
    nothing was found if no passage scores high enough."""
    parts = parts_of(question)
    most = math.ceil(MAX_SENTENCES / len(parts))
    found = [one for part in parts for one in _best(_candidates(part, question, evidence), most)]
    chosen, note = list({one.text: one for one in found}.values()), ""
    if not chosen:
        chosen, note = _foreign(question, evidence), FOREIGN
    if not chosen:
        return Written(nothing(question), ())
    chosen.sort(key=lambda one: (one.evidence.number, one.start))
    written = "\n".join(f"{one.text} [{one.evidence.number}]" for one in chosen)
    text, citations, _ = cited(written, {one.evidence.number for one in chosen})
    return Written(text, citations, note)


def nothing(question: str) -> str:
    """Say that nothing was found, in the language of the question as far as its script tells."""
    return NOTHING.get(script(question), NOTHING_ELSE)


def _candidates(part: str, question: str, evidence: Sequence[Evidence]) -> list[_Candidate]:
    """Select sentences that are relevant to this part of the question, in its script."""
    own = script(question)
    near = [
        one for one in evidence if script(one.text) == own and covered(part, one) >= LEAST_COVERED
    ]
    # Another part may name the subject of all of them.
    by_part, by_all = shares(part, near), shares(question, near)
    worth = {
        one.number: (1 + one.score) * (by_part[one.number] + by_all[one.number]) for one in near
    }
    least = max(worth.values(), default=0.0) * BESIDE_BEST
    asked, known = _asked(part), set(index_terms(question))
    return [
        _Candidate(worth[one.number] * share, one, at[0], _short(one.text[slice(*at)]))
        for one in near
        if worth[one.number] >= least
        for at, share in _weighed(one, asked, known)
    ]


def _weighed(
    one: Evidence, asked: Mapping[str, frozenset[str]], known: set[str]
) -> Iterator[tuple[tuple[int, int], float]]:
    """Locate and score the sentences of a passage that contain words of the question. Words that
    all of them share do not count."""
    sentences = list(_without_echoes(one.text, list(_sentences(one, asked)), known))
    weights = weights_of([said | above for _, said, above in sentences])
    whole = sum(weights.get(word, math.log(1 + len(sentences))) for word in asked)
    for at, said, above in sentences:
        if said:
            inherited = sum(weights[word] for word in above - said)
            yield at, (sum(weights[word] for word in said) + ABOVE * inherited) / whole


def _without_echoes(text: str, split: Sequence[_Sentence], known: set[str]) -> Iterator[_Sentence]:
    """Drop lines that only repeat words of the question, such as unmarked headings, if a sentence
    says the same and more."""

    def adds(one: _Sentence) -> bool:
        return bool(_STOP.search(text, *one.at) or set(index_terms(text[slice(*one.at)])) - known)

    telling = [one.said for one in split if one.said and adds(one)]
    for one in split:
        if adds(one) or not any(one.said <= said for said in telling):
            yield one


def _asked(question: str) -> dict[str, frozenset[str]]:
    """Return the words of a question with their terms: a part number is one word."""
    terms = query_terms(without_measures(question)).terms
    numbers = {
        term: frozenset(index_terms(term)[1:])
        for term in terms
        if TIE.search(term) and any(map(str.isdigit, term))
    }
    parts = frozenset[str]().union(*numbers.values())
    return {term: numbers.get(term, frozenset([term])) for term in terms if term not in parts}


def _held(asked: Mapping[str, frozenset[str]], text: str) -> set[str]:
    there = set(index_terms(text))
    return {word for word, parts in asked.items() if word in there or parts <= there}


def _sentences(one: Evidence, asked: Mapping[str, frozenset[str]]) -> Iterator[_Sentence]:
    """Split a passage into sentences, each with its context: the title, the headings above it, and
    the beginning of the passage."""
    always, headings = _held(asked, one.title), dict[int, set[str]]()
    marks = list(HEADING.finditer(one.text))
    telling = _telling(one)
    for at in telling:
        while marks and marks[0].start() < at[0]:
            mark = marks.pop(0)
            level = mark[0].count("#")
            headings = {other: words for other, words in headings.items() if other < level}
            headings[level] = _held(asked, one.text[mark.end() :].partition("\n")[0])
        said = _held(asked, one.text[slice(*at)])
        yield _Sentence(at, said, always.union(*headings.values()))
        if at == telling[0]:
            always |= said


def _best(candidates: Sequence[_Candidate], most: int) -> list[_Candidate]:
    ranked = sorted(candidates, key=lambda one: (-one.worth, one.evidence.number, one.start))
    chosen: dict[str, _Candidate] = {}
    for one in ranked:
        if one.worth < ranked[0].worth * BESIDE_BEST:
            break
        # Chunks overlap, and what one of them cuts the next has whole.
        if any(one.text in other for other in chosen):
            continue
        chosen = {text: other for text, other in chosen.items() if text not in one.text}
        if len(chosen) < most:
            chosen[one.text] = one
    return list(chosen.values())


def _foreign(question: str, evidence: Sequence[Evidence]) -> list[_Candidate]:
    """Quote the beginning of the best passage if it is in another script: it was found by meaning,
    and shares no words with the question."""
    best = max(evidence, key=lambda one: (one.score, -one.number), default=None)
    if best is None or script(best.text) in ("", script(question)):
        return []
    return [
        _Candidate(0.0, best, start, _short(best.text[start:end]))
        for start, end in _telling(best)[:2]
    ]


def _telling(one: Evidence) -> list[tuple[int, int]]:
    """Drop headings, which contain words of the question but answer nothing, and an incomplete
    first sentence; unless nothing else is left."""
    found = _whole(one.text)
    telling = [at for at in found if not HEADING.match(one.text, at[0])]
    if one.start and telling and one.text[telling[0][0]].islower():
        telling = telling[1:] or telling
    return telling or found


def _whole(text: str) -> list[tuple[int, int]]:
    """Split text into sentences, including those that span lines."""
    soft, whole = soft_breaks(text), list[tuple[int, int]]()
    for start, end in sentences(text):
        if whole and text.rfind("\n", whole[-1][1], start) in soft:
            goes_on = text[start].islower() or not _STOP.search(text, *whole[-1])
            start = whole.pop()[0] if goes_on else start
        whole.append((start, end))
    return whole


def _short(sentence: str) -> str:
    line = " ".join(sentence.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST].rsplit(' ', 1)[0]} {ELLIPSIS}"
