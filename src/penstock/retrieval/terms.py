"""Splits text into index terms, the same for every store.

A store puts `index_terms` joined by spaces into FTS5 (`FTS5_TOKENIZER` splits them again and
changes nothing), or as lexemes into a tsvector. No term holds a space, a quote or a backslash, so
none can be mistaken for syntax.

Scripts written without spaces are cut into pairs of characters, because finding their words would
take a dictionary: 東京都 is 東京, 京都. A Han character is also a term alone, as it is often a word
(with them nDCG@10 rose by .03 on manuals). So is the first syllable of a Korean word, because nouns
of one syllable come with a particle: 물은, 물이 (another .02 to .04).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from operator import add

from penstock.retrieval.stem import stem
from penstock.text.normalize import normalized

LONGEST_TERM = 64
"""Longer ones are cut: a SHA-256 is still found whole."""
LONGEST_WORD = 16
REMEMBERED = 1 << 15
"""Words whose terms are remembered: a few megabytes."""
FTS5_TOKENIZER = "ascii tokenchars '_.-+#'"

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"
_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_SOUTH_EAST_ASIA = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED = f"{_HAN}{_HANGUL}{_KANA}{_SOUTH_EAST_ASIA}"


# Patterns of other scripts are made when a text needs them: all together take 50 ms, which every
# parser would pay for when it starts.
@cache
def run_pattern() -> re.Pattern[str]:
    """A word, or words tied together as in foo_bar, v1.2.3, COVID-19, C++ and C#."""
    # Vowel signs and accents belong to the word they stand in; `\w` leaves them out.
    marks = "".join(
        character
        for character in map(chr, range(0x300, 0xE00))
        if unicodedata.category(character) in ("Mn", "Mc")
    )
    letter = rf"[^\W_{_UNSPACED}]"
    word = rf"{letter}(?:{letter}|[{marks}])*"
    return re.compile(rf"[{_UNSPACED}]+|{word}(?:[_.\-]{word})*(?:\+\+|\#(?!\w))?")


@cache
def _some(signs: str) -> re.Pattern[str]:
    return re.compile(f"[{signs}]+")


_ASCII_RUN = re.compile(r"[a-z0-9]+(?:[_.\-][a-z0-9]+)*(?:\+\+|#(?!\w))?")
_ASCII_LETTER = re.compile("[A-Za-z]")
TIE = re.compile(r"[_.\-]")
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]")
_SCRIPTS = {
    "han": f"{_HAN}{_KANA}",  # Japanese mixes the two, and may do with one
    "hangul": _HANGUL,
    "latin": "A-Za-z\u00aa-\u024f\u1e00-\u1eff",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": "\u0600-\u06ff\u0750-\u077f",
    "hebrew": "\u0590-\u05ff",
    "indic": "\u0900-\u0dff",
    "thai": _SOUTH_EAST_ASIA,
}
_WEIGHTS = {"han": 3, "hangul": 3}
"""A character of these says as much as about three letters."""
_LOOKED_AT = 1000
_HYPHEN = re.compile("[\u2010\u2011\u2012\u2212]")


def index_terms(text: str) -> list[str]:
    """Every term of `text`, in order and as often as it occurs."""
    return term_line(text).split()


def term_line(text: str) -> str:
    """`index_terms` joined by spaces, as they are stored."""
    if text.isascii():
        runs = _ASCII_RUN.findall(text.lower())
    else:
        runs = run_pattern().findall(normal(text))
    return " ".join(map(_lines.__getitem__, runs))


def script(text: str) -> str:
    """The script most of `text` is written in; "" if it has no letters that we know.

    Kept with each chunk: words are never found across scripts, and fusion must not mistake that
    for a passage that does not fit. A few Latin names do not make a Japanese text Latin.
    """
    start = text[:_LOOKED_AT]
    if start.isascii():
        return "latin" if _ASCII_LETTER.search(start) else ""
    best, most, left = "", 0, len(start)
    for name, letters in _SCRIPTS.items():
        # By runs of letters: far fewer matches than letters.
        count = len("".join(_some(letters).findall(start)))
        weight = count * _WEIGHTS.get(name, 1)
        if weight > most:
            best, most = name, weight
        left -= count
        if most >= left * max(_WEIGHTS.values()):  # nothing that is left can outweigh it
            break
    return best


def is_unspaced(text: str) -> bool:
    """Whether `text` starts with a character that is indexed in pairs."""
    return not text[:1].isascii() and _some(_UNSPACED).match(text) is not None


def is_hangul(text: str) -> bool:
    """Whether `text` starts with Korean: indexed in pairs, but written with spaces."""
    return not text[:1].isascii() and _some(_HANGUL).match(text) is not None


def normal(text: str) -> str:
    """`text` without differences of width, case and kind of hyphen."""
    return _HYPHEN.sub("-", normalized("NFKC", text).casefold())


class _Lines(dict[str, str]):
    """Search terms of a run of letters. Words repeat, so theirs are cached; long runs are not:
    without spaces one is half a sentence, and so many would fill hundreds of megabytes."""

    def __missing__(self, run: str) -> str:
        line = " ".join(_split(run))
        if len(run) <= LONGEST_WORD:
            if len(self) >= REMEMBERED:
                self.clear()
            self[run] = line
        return line


_lines = _Lines()


def _split(run: str) -> Sequence[str]:
    if is_unspaced(run):
        return _pairs(run)
    words = TIE.split(run.rstrip("+#"))
    parts = tuple(_key(word) for word in words)
    if len(words) == 1 and run[-1] not in "+#":
        return parts
    return (_plain(run)[:LONGEST_TERM], *parts)


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    alone = [*"".join(_some(_HAN).findall(run))]
    if is_hangul(run):
        alone.append(run[0])
    return [*map(add, run, run[1:]), *alone]


def _key(word: str) -> str:
    word = _plain(word)
    return (stem(word) if word.isascii() and word.isalpha() else word)[:LONGEST_TERM]


def _plain(word: str) -> str:
    """Without accents: "café" is asked for as "cafe", and the other way round."""
    if word.isascii():
        return word
    return normalized("NFC", _ACCENT.sub("", normalized("NFD", word)))
