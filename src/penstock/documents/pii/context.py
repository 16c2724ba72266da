"""The surroundings of a number: its bounds, and words that say what it is."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property


def first(signs: str) -> str:
    """Pattern: one of `signs`, not inside a word, a longer number or a decimal.

    It takes the sign and then looks back, because a pattern that opens with a look back is tried
    at every character of the text: ten times slower.
    """
    return rf"[{signs}](?<![0-9A-Za-z][{signs}])(?<![0-9][-.][{signs}])"


LAST = r"(?![0-9A-Za-z])(?![-.][0-9])"
"""Pattern: the end of a number; no word, longer number or decimal continues."""

_BESIDE_NUMBER = re.compile(r"(?<=[0-9] )|(?<=[0-9]  )")
_NUMBER_FOLLOWS = re.compile(r" {1,2}[0-9]{3}")
_JOINED = re.compile(r" ?(?:[,;/、・-]|->|→)? ?(?:(?:and|or|to|und|et|と|및|와) ?)?")
_LETTER = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_TOUCHED_BEFORE = re.compile(rf"(?<=[{_LETTER}])|(?<=[{_LETTER}A-Za-z)][:=])|(?<=[:=] )")
_TOUCHED_AFTER = re.compile(rf"[{_LETTER}]")

_PARTS = {
    *("part", "parts", "item", "items", "sku", "model", "models", "serial", "catalog", "catalogue"),
    *("article", "stock", "lot", "p/n", "s/n", "pn", "ref", "품번", "부품", "모델"),
}
_NUMBERS = {"no", "nr", "num", "number", "numbers", "code", "codes", "id", "번호"}
_PARTS_TOUCHING = ("型番", "品番", "部品", "部品番号", "품번", "부품번호", "모델")


def in_row(text: str, start: int, end: int) -> bool:
    """Whether there are numbers on either side, as in a table row."""
    return bool(_BESIDE_NUMBER.match(text, start) or _NUMBER_FOLLOWS.match(text, end))


def in_prose(text: str, start: int, end: int) -> bool:
    """Whether a Japanese or Korean word touches it, or a colon precedes it."""
    return bool(_TOUCHED_BEFORE.match(text, start) or _TOUCHED_AFTER.match(text, end))


def goes_on(text: str, end: int, start: int) -> bool:
    """Whether only a comma, "and" or the like separates two list entries."""
    return 0 <= start - end <= 8 and bool(_JOINED.fullmatch(text, end, start))


def calls_part(text: str, start: int) -> bool:
    """Whether the text right before it announces a part number."""
    ahead = text[max(0, start - 24) : start].rstrip(" .:#(=").lower()
    said = ahead.split()[-2:]
    if said and said[-1].rstrip(".") in _NUMBERS:
        said.pop()
    return bool(said) and (said[-1] in _PARTS or ahead.endswith(_PARTS_TOUCHING))


def beside(pattern: str, reach: int) -> Callable[[str, int, int], bool]:
    """Build a test whether the word before or after matches `pattern`, of at most `reach`
    characters."""
    before = re.compile(rf"(?<![0-9A-Za-z.-])(?:{pattern})[,;]?\s\Z")
    behind = re.compile(rf"[,;]?\s(?:{pattern})(?![0-9A-Za-z])(?![.-][0-9])")

    def found(text: str, start: int, end: int) -> bool:
        ahead = text[max(0, start - reach - 2) : start]
        return bool(before.search(ahead) or behind.match(text, end))

    return found


def words(spaced: str, *more: str) -> re.Pattern[str]:
    """A pattern for any of the words: in `spaced`, set apart by spaces, and each of `more`.

    ASCII words match at the start of a word, in lower case, upper case or with a capital; those of
    up to three letters only as whole words. The cases are spelt out because ignoring case is slow.
    """
    choices: list[str] = []
    for word in (*spaced.split(), *more):
        if not word.isascii():
            choices.append(re.escape(word))
            continue
        end = "(?![A-Za-z])" if len(word) <= 3 else ""
        choices += [
            f"{form[0]}(?<![A-Za-z]{form[0]}){re.escape(form[1:])}{end}"
            for form in dict.fromkeys((word, word.capitalize(), word.upper()))
        ]
    return re.compile("|".join(choices))


class WordPositions:
    """Positions of certain words in a text. Searched for once, on first use: most texts need none,
    and a text full of numbers must not be searched around each of them."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern = pattern
        self._text = text

    @cached_property
    def _found(self) -> tuple[list[int], list[int]]:
        spans = [match.span() for match in self._pattern.finditer(self._text)]
        return [start for start, _ in spans], [end for _, end in spans]

    def near(self, start: int, end: int, *, before: int = 40, after: int = 20) -> bool:
        """Whether one of the words ends within `before` characters before `start`, or starts within
        `after` characters after `end`."""
        starts, ends = self._found
        at = bisect_left(ends, start - before)
        if at < len(ends) and ends[at] <= start:
            return True
        at = bisect_left(starts, end)
        return at < len(starts) and starts[at] < end + after
