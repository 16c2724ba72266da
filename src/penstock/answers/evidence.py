"""The evidence for an answer: passages deduplicated, numbered, and cut to the model's context."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from penstock.documents.tokens import TOKEN, count_tokens
from penstock.model.answer import Evidence
from penstock.retrieval.query import query_terms
from penstock.retrieval.search import Passage
from penstock.retrieval.terms import index_terms, script
from penstock.wire.view import made

MAX_PARTS = 4

_ASK = (
    "how what when where which who whose why wie was wann wo wer warum welche welcher welches "
    "comment combien quand qui quoi quel quelle pourquoi cómo qué cuándo cuánto cuánta dónde "
    "quién cuál come quando quanto quale dove chi perché hoe wat wanneer waar welke waarom wie "
    "como quanto qual onde quem"
)
_NEXT = re.compile(
    rf"(?<=[?\uff1f])|[,;]?\s(?:and|or|und|et|y|e|en)\s+(?=(?:{_ASK.replace(' ', '|')})\b)",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"\b(how\s+)"
    r"(?:long|often|frequently|far|soon|late|early|fast|quickly|slowly|old|new|young|big|large|"
    r"small|high|low|tall|deep|wide|broad|thick|thin|heavy|light|hot|warm|cold|loud|strong|"
    r"expensive|costly|good|bad|well|badly)\b"
    r"|\b(wie\s+)(?:lange?|oft|häufig|weit|bald|spät|schnell|alt|groß|klein|hoch|tief|breit|dick|"
    r"schwer|heiß|warm|kalt|laut|stark|teuer|gut|viele?)\b",
    re.IGNORECASE,
)


def parts_of(question: str) -> list[str]:
    """Its questions, one after the other: "How long is A, and what is B?" asks two."""
    parts = [part.strip() for part in _NEXT.split(question, maxsplit=MAX_PARTS - 1)]
    return [part for part in parts if part] or [question]


def without_measures(question: str) -> str:
    """Without what follows "how": "how long" asks for a time, and an answer has no "long"."""
    return _MEASURE.sub(lambda found: found[1] or found[2], question)


MAX_EVIDENCE = 30
"""Passages of one answer."""
PER_ROUND = 10
"""New ones in one round: later rounds need room, too."""
MAX_MISSING = 10
LEAST_TOKENS = 40
"""A passage of which less would be shown is not shown."""

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
        """What is new among passages by query, in round `number`: the best of each query first,
        then the second best."""
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
    """The best of it, in the order of its numbers, so many tokens in all; the last is cut."""
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
    """Words of a question that nothing found has: all that can be said of what is missing without
    a model. Nothing is said where what was found is in another script: words are not found across
    scripts."""
    asked = query_terms(question)
    if evidence and not any(script(one.text) == asked.script for one in evidence):
        return ()
    there = {term for one in evidence for term in _terms(one)}
    missing = [word for word in words(question) if not _is_there(word, there)]
    return tuple(missing[:MAX_MISSING])


def covered(question: str, one: Evidence) -> float:
    """The share of the question's words that a passage has. Words that every text has are not
    counted: they bring passages that have nothing else to do with it."""
    asked, there = words(question), _terms(one)
    return sum(_is_there(word, there) for word in asked) / len(asked) if asked else 1.0


def shares(question: str, evidence: Sequence[Evidence]) -> dict[int, float]:
    """The same for each passage by its number, where words count the more the fewer passages have
    them: where all are about pumps, it is the name of one that tells which is meant."""
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
    """What words are worth by how few of these have them; over zero, also where all have."""
    holding = Counter(word for words in held for word in words)
    return {word: math.log((1 + len(held)) / count) for word, count in holding.items()}


def words(question: str) -> list[str]:
    """The words of a question that tell what it is about, each once, as they are written."""
    telling = set(query_terms(question).terms)
    return [
        word
        for word in dict.fromkeys(_WORD.findall(without_measures(question)))
        if telling.intersection(index_terms(word))
    ]


def _terms(one: Evidence) -> set[str]:
    return set(index_terms(f"{one.title} {one.text}"))


def _is_there(word: str, there: set[str]) -> bool:
    """Half of its terms are enough: Korean words come with particles, and Japanese ones are cut
    into pairs."""
    terms = set(index_terms(word))
    return 2 * len(terms & there) >= len(terms)
