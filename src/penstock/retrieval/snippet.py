"""Selects the part of a chunk that shows why it was found."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.retrieval.terms import TIE, index_terms, is_hangul, is_unspaced, normal, run_pattern

LENGTH = 240
ROUNDING = 1e-9
"""Weights of the same terms, added and taken away in another order, differ by less."""
_SENTENCE_START = re.compile(r"[.!?]\s+(?=\S)|[。！？]\s*(?=\S)|\n\s*(?=\S)")  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Snippet:
    """`text` is `chunk[start:end]`; `marks` are from-to pairs in it, in order, not overlapping."""

    text: str
    start: int
    end: int
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    terms: frozenset[str]


def snippet(text: str, weights: Mapping[str, float], length: int = LENGTH) -> Snippet:
    """At most `length` characters of `text` that hold the most weight of a query's terms.

    It starts where a sentence does if there is room, else where a word does, and ends likewise; no
    character of a word is cut off unless one word alone is longer. Without a match it is the
    beginning of the text.
    """
    matches = list(_matches(text, weights))
    first, last = _best(matches, weights, length)
    start, end = _bounds(text, first, last, length)
    marks: list[tuple[int, int]] = []
    for match in matches:
        if start <= match.start and match.end <= end:
            here = (match.start - start, match.end - start)
            if marks and here[0] <= marks[-1][1]:
                marks[-1] = (marks[-1][0], max(here[1], marks[-1][1]))
            else:
                marks.append(here)
    return Snippet(text[start:end], start, end, tuple(marks))


def _matches(text: str, weights: Mapping[str, float]) -> Iterator[_Match]:
    """Where terms of the query are in the text as it was written, in order."""
    for run in run_pattern().finditer(text):
        if not _may_match(run[0], weights):
            continue
        for start, end, terms in _pieces(run[0]):
            held = terms & weights.keys()
            if held:
                yield _Match(run.start() + start, run.start() + end, held)


def _may_match(run: str, weights: Mapping[str, float]) -> bool:
    """Whether it is worth to take a run to pieces; most are not."""
    if not run.isascii() and is_unspaced(key := normal(run)):
        return any(term in key for term in weights)
    return not weights.keys().isdisjoint(index_terms(run))


def _pieces(run: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """What of a run can match alone: characters and pairs of them, or words tied together."""
    key = normal(run)
    if is_unspaced(key):
        if len(key) != len(run):  # half-width kana, of which two can make one
            yield 0, len(run), frozenset(index_terms(run))
            return
        for at in range(len(key)):
            if at == 0 or not is_hangul(key):
                yield at, at + 1, frozenset({key[at]})
            if at + 1 < len(key):
                yield at, at + 2, frozenset({key[at : at + 2]})
        return
    if len(TIE.split(run)) > 1:
        whole = frozenset(index_terms(run)[:1])
        yield 0, len(run), whole
    at = 0
    for tie in TIE.finditer(run):
        yield at, tie.start(), frozenset(index_terms(run[at : tie.start()]))
        at = tie.end()
    yield at, len(run), frozenset(index_terms(run[at:]))


def _best(matches: Sequence[_Match], weights: Mapping[str, float], length: int) -> tuple[int, int]:
    """From where to where the heaviest matches are that fit into `length`; the first if equal."""
    best, found = 0.0, (0, 0)
    held: Counter[str] = Counter()
    weight, after = 0.0, 0
    for at, first in enumerate(matches):
        while after < len(matches) and matches[after].end - first.start <= length:
            for term in matches[after].terms:
                held[term] += 1
                weight += weights[term] if held[term] == 1 else 0.0
            after += 1
        if weight > best + ROUNDING:
            best, found = weight, (at, after)
        if after == at:  # it does not fit by itself
            after += 1
            continue
        for term in first.terms:
            held[term] -= 1
            weight -= weights[term] if held[term] == 0 else 0.0
    return _span(matches[slice(*found)])


def _span(matches: Sequence[_Match]) -> tuple[int, int]:
    """From the first to the last that adds a term."""
    held: set[str] = set()
    start = end = matches[0].start if matches else 0
    for match in matches:
        if match.terms - held:
            held |= match.terms
            end = match.end
    return start, end


def _bounds(text: str, first: int, last: int, length: int) -> tuple[int, int]:
    """Grow `first` to `last` up to `length`, to where sentences or else words begin and end."""
    if len(text) <= length:
        return 0, len(text)
    # Without its end of white space each look ahead finds something: linear, whatever the text.
    starts = _SENTENCE_START.finditer(text.rstrip())
    sentences = [0, *(found.end() for found in starts), len(text)]
    start = sentences[bisect_right(sentences, first) - 1]
    if len(text) - start < length:  # near the end: what fits of the sentences before it
        start = min(start, sentences[bisect_left(sentences, len(text) - length)])
    if last - start > length:
        # No room for the whole sentence: some words of it before the first match.
        lowest = max(0, first - (length - (last - first)) // 2)
        start = next(at for at in range(lowest, first + 1) if at == first or _begins(text, at))
    most = min(len(text), start + length)
    end = sentences[bisect_right(sentences, most) - 1]
    if end < last or end - start < length // 2:
        least = max(last, start + 1)
        end = next((at for at in range(most, least - 1, -1) if _ends(text, at)), most)
    return start, start + len(text[start:end].rstrip())


def _begins(text: str, at: int) -> bool:
    """Whether a word begins at `at`."""
    return not text[at].isspace() and _ends(text, at)


def _ends(text: str, at: int) -> bool:
    """Whether no word goes on over `at`: anywhere in a script without spaces."""
    if at in (0, len(text)) or text[at - 1].isspace() or text[at].isspace():
        return True
    return any(is_unspaced(side) and not is_hangul(side) for side in (text[at - 1], text[at]))
