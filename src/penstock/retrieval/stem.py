"""Strips English word endings, so that "connected" finds "connection".

A short form of Porter's rules: an ending goes only if enough of a word is left. What comes out is
a key, not a word ("happy" becomes "happi"). Words of other languages pass through: few end so.
"""

from __future__ import annotations

import re

SHORTEST = 4
"""Shorter words have no ending worth cutting: "bus", "his", "red"."""

# How much of a word is left is counted in turns from vowel to consonant: "tr" 0, "oats" 1,
# "private" 2. A "y" after a consonant sounds as a vowel.
_TURN = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)+[^aeiou]")
_VOWEL = re.compile(r"[aeiou]|.y")
_SHORT_END = re.compile(r"(?:^|.*[^aeiou])[aeiouy][^aeiouwxy]")

# Endings of endings. Needs one turn before it.
_OUTER = {
    "ational": "ate",
    "ication": "ic",
    "ization": "ize",
    "isation": "ize",
    "fulness": "ful",
    "ousness": "ous",
    "iveness": "ive",
    "tional": "tion",
    "icalli": "ic",
    "icator": "ic",
    "biliti": "ble",
    "ation": "ate",
    "ative": "ate",
    "alism": "al",
    "aliti": "al",
    "ousli": "ous",
    "entli": "ent",
    "iviti": "ive",
    "icate": "ic",
    "alize": "al",
    "alise": "al",
    "iciti": "ic",
    "ator": "ate",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "iser": "ize",
    "alli": "al",
    "ical": "ic",
    "ness": "",
    "bli": "ble",
    "eli": "e",
    "ful": "",
}
_OUTER_ENDINGS = tuple(_OUTER)
# What is left is a stem of its own. Needs two turns before it, so that "cement" stays.
_INNER = (
    *("ement", "ance", "ence", "able", "ible", "ment", "sion", "tion", "ant", "ent", "ism"),
    *("ate", "iti", "ous", "ive", "ize", "ise", "al", "er", "ic"),
)


def stem(word: str) -> str:
    """The key under which a lower-case English word is indexed."""
    if len(word) < SHORTEST:
        return word
    word = _tense(_singular(word))
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    if ending := _first(word, _OUTER_ENDINGS):
        rest = word.removesuffix(ending)
        word = rest + _OUTER[ending] if _turns(rest) >= 1 else word
    if ending := _first(word, _INNER):
        kept = word.removesuffix(ending) + (ending[0] if ending.endswith("ion") else "")
        word = kept if _turns(kept) >= 2 else word
    return _closed(word)


def _first(word: str, endings: tuple[str, ...]) -> str:
    """The first of these that it ends in, or none: most words have none, which is one look."""
    return next(filter(word.endswith, endings)) if word.endswith(endings) else ""


def _turns(text: str) -> int:
    return len(_TURN.findall(text))


def _singular(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _turns(word[:-3]) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and _VOWEL.search(word.removesuffix(ending)):
            word = word.removesuffix(ending)
            if word.endswith(("at", "bl", "iz")):
                return word + "e"
            if len(word) > 1 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
                return word[:-1]
            if _turns(word) == 1 and _SHORT_END.fullmatch(word):
                return word + "e"
            return word
    return word


def _closed(word: str) -> str:
    """Without a last "e" or a doubled "l" that only the ending had needed."""
    if word.endswith("e"):
        rest = word[:-1]
        turns = _turns(rest)
        if turns > 1 or (turns == 1 and not _SHORT_END.fullmatch(rest)):
            word = rest
    if word.endswith("ll") and _turns(word) > 1:
        word = word[:-1]
    return word
