"""Splits a question into its parts, and finds the words that only ask."""

from __future__ import annotations

import re

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
    """Split a question into its parts: "How long is A, and what is B?" asks two."""
    parts = [part.strip() for part in _NEXT.split(question, maxsplit=MAX_PARTS - 1)]
    return [part for part in parts if part] or [question]


def without_measures(question: str) -> str:
    """Drop the word after "how": "how long" asks for a time, and an answer contains no "long"."""
    return _MEASURE.sub(lambda found: found[1] or found[2], question)
