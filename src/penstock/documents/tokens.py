"""Estimates the number of tokens of a text without a tokenizer.

A token here is one of
    up to six Latin letters; up to three letters of another alphabet that uses spaces
    up to three digits
    one character of a script without spaces (Chinese, Japanese, Thai ...), or Korean
    one sign or emoji
    two to sixteen blanks in a row; a single blank belongs to its word

That is a little more than the tokenizers of multilingual models count, so a limit kept by this
count is kept by theirs. A part never has more tokens than the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

CountTokens = Callable[[str], int]
"""A tokenizer, as far as chunking needs one. Tokens it adds to every text (`[CLS]`) do not
matter."""

_WITHOUT_SPACES = (
    r"\u0e00-\u0eff"  # Thai, Lao
    r"\u0f00-\u109f"  # Tibetan, Burmese
    r"\u1100-\u11ff"  # Korean letters
    r"\u1780-\u17ff"  # Khmer
    r"\u2e80-\u2fff\u3001-\uffff"  # Chinese, Japanese, Korean syllables; but not their blank
    r"\U00010000-\U0010ffff"
)
TOKEN = re.compile(
    rf"[A-Za-z\u00c0-\u024f]{{1,6}}|[{_WITHOUT_SPACES}]|[0-9]{{1,3}}|[^\W\d_{_WITHOUT_SPACES}]{{1,3}}|\s{{2,16}}|\S"
)


# No token holds blanks and other signs, and none more than one of those without spaces.
_BLANK = re.compile(r"\s\S|\S\s")


@cache
def _apart() -> re.Pattern[str]:
    """Built on demand."""
    return re.compile(rf"[{_WITHOUT_SPACES}].|.[{_WITHOUT_SPACES}]", re.DOTALL)


def count_tokens(text: str) -> int:
    return len(TOKEN.findall(text))


def is_apart(text: str, at: int) -> bool:
    """Whether `count_tokens` of `text` is the sum of its parts before and after `at`. May be False
    although it is."""
    pair = text[at - 1 : at + 1]
    if pair.isascii():
        return _BLANK.match(pair) is not None
    return (_BLANK.match(pair) or _apart().match(pair)) is not None
