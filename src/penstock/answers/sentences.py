"""Splits text into sentences, and finds their citations."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from penstock.documents.boundaries import Boundaries
from penstock.model.answer import Citation

_AND = r"\s{0,2}[,;\u3001\uff0c]\s{0,2}"
_MARK = re.compile(
    rf"[ \t]?[\[\u3010]\s{{0,2}}(\d{{1,4}}(?:{_AND}\d{{1,4}}){{0,19}})\s{{0,2}}[\]\u3011]"
)
"""`[1]`, `[1, 2]`, and the brackets some models use in Japanese; with the space before."""
_LEADING = re.compile(r"\s*(?:\[\d{1,4}\]\s*)+")
_SAYS = re.compile(r"\w")


class Cited(NamedTuple):
    text: str
    citations: tuple[Citation, ...]
    removed: int
    """Citations of numbers that do not exist."""


def cited(text: str, known: Container[int]) -> Cited:
    """Normalize the citations of a text to `[1]`, and remove those that do not resolve."""
    parts: list[str] = []
    citations: list[Citation] = []
    at, behind, removed = 0, 0, 0
    for mark in _MARK.finditer(text):
        before = text[behind : mark.start()]
        numbers = list(dict.fromkeys(int(one) for one in re.findall(r"\d+", mark[1])))
        good = [number for number in numbers if number in known]
        removed += len(numbers) - len(good)
        blank = mark[0][0] if good and mark[0][0] in " \t" else ""
        parts += [before, blank]
        at += len(before) + len(blank)
        for number in good:
            written = f"[{number}]"
            citations.append(Citation(number, at, at + len(written)))
            parts.append(written)
            at += len(written)
        behind = mark.end()
    parts.append(text[behind:])
    return Cited("".join(parts), tuple(citations), removed)


def sentences(text: str) -> list[tuple[int, int]]:
    """Find the start and end of each sentence or single line. Citations after a full stop belong to
    the sentence before it; a small letter after a full stop means that it ended an abbreviation."""
    found: list[tuple[int, int]] = []
    start = 0
    for end in [*Boundaries(text).strong(), len(text)]:
        line = text[start:end]
        leading = _LEADING.match(line)
        if found and leading is not None and "\n" not in text[found[-1][0] : start]:
            found[-1] = (found[-1][0], start + leading.end())
            start += leading.end()
        elif found and line[:1].islower() and "\n" not in text[found[-1][0] : start]:
            found[-1] = (found[-1][0], end)
            start = end
        if start < end:
            found.append((start, end))
        start = end
    return [_trimmed(text, *one) for one in found if _SAYS.search(text[slice(*one)])]


def unsupported(text: str, citations: tuple[Citation, ...]) -> tuple[tuple[int, int], ...]:
    """Find sentences without a citation."""
    return tuple(
        (start, end)
        for start, end in sentences(text)
        if not any(start <= one.start < end for one in citations)
    )


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
