"""The evidence for an answer: passages deduplicated, numbered, and cut to the model's context."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from penstock.answers.question import without_measures
from penstock.documents.tokens import TOKEN, count_tokens
from penstock.model.answer import Evidence
from penstock.retrieval.query import query_terms
from penstock.retrieval.search import Passage
from penstock.retrieval.terms import index_terms, script
from penstock.wire.view import made

MAX_EVIDENCE = 30
"""Maximum passages of one answer."""
PER_ROUND = 10
"""Maximum new passages in one round: later rounds need room, too."""
MAX_MISSING = 10
LEAST_TOKENS = 40
"""Minimum size of a passage after truncation; smaller ones are dropped."""

_WORD = re.compile(
    r"[\u3005\u3400-\u9fff]+|[\u30a1-\u30fa\u30fc]+"  # of Japanese what is not grammar
    r"|[\uac00-\ud7a3]+|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+(?:[-.'][^\W_]+)*"
)


class Gathered:
    """The evidence of an answer as it grows."""

    def __init__(self, found: Sequence[Evidence] = ()) -> None:
        self.all = list(found)
        self._known = {(one.collection, one.document, one.chunk) for one in found}

    def add(self, found: Sequence[tuple[str, Sequence[Passage]]], number: int) -> list[Evidence]:
        """Add the new passages of round `number`, by query: the best of each query first, then the
        second best. Returns those added."""
        new: list[Evidence] = []
        most = min(PER_ROUND, MAX_EVIDENCE - len(self.all))
        for query, passage in _in_turn(found):
            key = (passage.collection, passage.document, passage.chunk)
            if len(new) == most:
                break
            if key not in self._known:
                self._known.add(key)
                place = len(self.all) + len(new) + 1
                new.append(made(Evidence, passage, number=place, query=query, round=number))
        self.all += new
        return new


def _in_turn(found: Sequence[tuple[str, Sequence[Passage]]]) -> Iterable[tuple[str, Passage]]:
    longest = max((len(passages) for _, passages in found), default=0)
    for rank in range(longest):
        for query, passages in found:
            if rank < len(passages):
                yield query, passages[rank]


def within(evidence: Sequence[Evidence], tokens: int) -> list[Evidence]:
    """Select the best evidence within a token budget, in the order of its numbers; the last passage
    is truncated."""
    kept: list[Evidence] = []
    for one in sorted(evidence, key=lambda one: (-one.score, one.number)):
        needed = count_tokens(one.text)
        if needed > tokens and tokens >= LEAST_TOKENS:
            ends = [token.end() for token in TOKEN.finditer(one.text)]
            one, needed = replace(one, text=one.text[: ends[tokens - 1]]), tokens
        if needed <= tokens:
            kept.append(one)
            tokens -= needed
    return sorted(kept, key=lambda one: one.number)


def not_found(question: str, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return the words of a question that no evidence contains: the best guess at what is missing
    without a model. Empty if the evidence is in another script, because words do not match across
    scripts."""
    asked = query_terms(question)
    if evidence and not any(script(one.text) == asked.script for one in evidence):
        return ()
    there = {term for one in evidence for term in _terms(one)}
    missing = [word for word in words(question) if not _is_there(word, there)]
    return tuple(missing[:MAX_MISSING])


def covered(question: str, one: Evidence) -> float:
    """Return the share of the question's words in a passage. Stop words do not count, because
    unrelated passages contain them."""
    asked, there = words(question), _terms(one)
    return sum(_is_there(word, there) for word in asked) / len(asked) if asked else 1.0


def shares(question: str, evidence: Sequence[Evidence]) -> dict[int, float]:
    """Return the same share for each passage by number, weighing rare words more: if all passages
    are about pumps, the name of one decides."""
    asked = words(question)
    there = [_terms(one) for one in evidence]
    held = [{word for word in asked if _is_there(word, terms)} for terms in there]
    weights = weights_of(held)
    whole = sum(weights.values()) or 1.0
    return {
        one.number: sum(weights[word] for word in found) / whole
        for one, found in zip(evidence, held, strict=True)
    }


def weights_of(held: Sequence[Collection[str]]) -> dict[str, float]:
    """Weigh words by how few of the passages contain them; always above zero."""
    holding = Counter(word for words in held for word in words)
    return {word: math.log((1 + len(held)) / count) for word, count in holding.items()}


def words(question: str) -> list[str]:
    """Return the content words of a question, without duplicates, as written."""
    telling = set(query_terms(question).terms)
    return [
        word
        for word in dict.fromkeys(_WORD.findall(without_measures(question)))
        if telling.intersection(index_terms(word))
    ]


def _terms(one: Evidence) -> set[str]:
    return set(index_terms(f"{one.title} {one.text}"))


def _is_there(word: str, there: set[str]) -> bool:
    """Whether half of a word's terms match: Korean words have particles, and Japanese ones are cut
    into pairs."""
    terms = set(index_terms(word))
    return 2 * len(terms & there) >= len(terms)
