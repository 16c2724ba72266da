"""Texts in three languages, made on the spot from a seed: the same each time, and nobody's.

Words are made of syllables and drawn by Zipf's law, so that an index sees what it sees in real
texts: a few words nearly everywhere, most of them hardly anywhere.
"""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

WORDS = 30_000
"""Different words of a language."""
PAGES = 10
PAGE_TOKENS = 500
SENTENCE = (6, 16)
"""Words in a sentence, at least and at most."""
QUESTION = (5, 10)
"""Words in a question."""


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    words: Sequence[str]
    particles: Sequence[str]
    """What words of a sentence end in."""
    blank: str
    stop: str
    font: str
    tokens: float
    """Of a word with its particle and blank, about, as `penstock.documents.tokens` counts."""
    line: int
    """Characters of a line on a page of 10 pages that hold about 5,000 tokens."""


def _words(first: Sequence[str], rest: Sequence[str], most: int, seed: int) -> list[str]:
    """Short words are the frequent ones, as in every language."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        length = min(most, 1 + len(found) // 300)
        tail = (chance.choice(rest) for _ in range(chance.randint(0, length)))
        found[chance.choice(first) + "".join(tail)] = None
    return list(found)


@cache
def languages() -> tuple[Language, ...]:
    syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprstvz", "aeiou")]
    closed = [start + end for start in syllables for end in ("", "n", "r", "st")]
    han = [chr(code) for code in range(0x4E00, 0x4E00 + 2000)]
    hangul = [chr(code) for code in range(0xAC00, 0xAC00 + 11_000, 13)]
    return (
        Language("en", _words(syllables, closed, 3, 1), ("",), " ", ". ", "Helvetica", 1.35, 105),
        Language(
            "ja",
            _words(han, han, 2, 2),
            tuple("はがをにのでと"),
            "",
            "。",
            "HeiseiMin-W3",
            2.85,
            52,
        ),
        Language(
            "ko",
            _words(hangul, hangul, 2, 3),
            tuple("은이을에의"),
            " ",
            ". ",
            "HYSMyeongJo-Medium",
            2.95,
            62,
        ),
    )


class Writer:
    """Writes in one language. Two with the same seed write the same."""

    def __init__(self, language: Language, seed: int) -> None:
        self.language = language
        self._numbers = numpy.random.default_rng(seed)
        share = 1 / numpy.arange(1, len(language.words) + 1)
        self._shares = numpy.cumsum(share / share.sum())

    def words(self, count: int) -> list[str]:
        drawn = numpy.searchsorted(self._shares, self._numbers.random(count))
        return [self.language.words[min(at, WORDS - 1)] for at in drawn]

    def prose(self, tokens: int) -> str:
        """About so many tokens, in sentences."""
        language = self.language
        left = self.words(max(1, round(tokens / language.tokens)))
        ends = self._numbers.integers(0, len(language.particles), len(left)).tolist()
        inflected = [word + language.particles[end] for word, end in zip(left, ends, strict=True)]
        lengths = self._numbers.integers(*SENTENCE, len(left)).tolist()
        sentences, start = [], 0
        for length in lengths:
            if start >= len(inflected):
                break
            sentences.append(language.blank.join(inflected[start : start + length]))
            start += length
        return language.stop.join(sentences) + language.stop.rstrip()

    def question(self) -> str:
        """Of question length, with words as frequent as those of the texts, less the commonest
        hundred: those make a sentence, not a question."""
        language, chosen = self.language, list[str]()
        wanted = int(self._numbers.integers(*QUESTION))
        common = set(language.words[:100])
        while len(chosen) < wanted:
            chosen += [word for word in self.words(wanted) if word not in common]
        return language.blank.join(chosen[:wanted])


def writers(seed: int) -> Iterator[Writer]:
    """A writer for each document: the languages take turns."""
    for number in itertools.count():
        yield Writer(languages()[number % 3], seed * 1_000_003 + number)


def markdown(writer: Writer) -> str:
    """Ten sections, about 5,000 tokens."""
    title, *headings = (writer.language.blank.join(writer.words(3)) for _ in range(1 + PAGES))
    sections = [f"## {heading}\n\n{writer.prose(PAGE_TOKENS)}\n" for heading in headings]
    return f"# {title}\n\n" + "\n".join(sections)


def pdf(writer: Writer) -> bytes:
    """Ten pages, about 5,000 tokens."""
    language = writer.language
    if language.font != "Helvetica":
        pdfmetrics.registerFont(UnicodeCIDFont(language.font))
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pageCompression=1, invariant=1)
    canvas.setTitle(language.blank.join(writer.words(3)))
    for number in range(1, PAGES + 1):
        heading = f"{number} {language.blank.join(writer.words(3))}"
        canvas.bookmarkPage(heading)
        canvas.addOutlineEntry(heading, heading)
        canvas.setFont(language.font, 14)
        canvas.drawString(60, 790, heading)
        text = canvas.beginText(60, 765)
        text.setFont(language.font, 9)
        prose = writer.prose(PAGE_TOKENS)
        for start in range(0, len(prose), language.line):
            text.textLine(prose[start : start + language.line])
        canvas.drawText(text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()
