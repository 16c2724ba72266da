"""Limits of messages, checked by the sender and by the receiver."""

from __future__ import annotations

import math
from collections.abc import Iterable

from penstock.errors import ValidationError
from penstock.model.answer import Evidence, Round
from penstock.ports.librarian import MAX_ROUNDS, Errand

MESSAGE_BYTES = 4 * 1024 * 1024
"""Maximum size of an errand or a round."""
MAX_CHARACTERS = 100_000
"""Maximum length of a text."""
MAX_ITEMS = 1000
"""Maximum length of a list."""


def check_errand(errand: Errand) -> None:
    """Raise ValidationError if the errand cannot be run."""
    if not errand.tenant:
        raise ValidationError("an errand needs a tenant")
    if not errand.question.strip():
        raise ValidationError("the question is empty")
    _texts("the errand", (errand.tenant, errand.question, errand.plan.enough))
    _list("queries", errand.plan.queries)
    if errand.collections is not None:
        _list("collections", errand.collections)
    if not 0 <= errand.rounds_done <= MAX_ROUNDS:
        raise ValidationError(f"{errand.rounds_done} rounds cannot be done already")
    _evidence(errand.found)


def check_round(turn: Round) -> None:
    """Raise ValidationError if a librarian could not have sent the round."""
    if not 1 <= turn.number <= MAX_ROUNDS:
        raise ValidationError(f"there is no round {turn.number}")
    _list("queries", turn.queries)
    _list("missing", turn.missing)
    _list("queries", turn.next)
    _texts("the round", (turn.note,))
    _evidence(turn.evidence)


def _evidence(given: tuple[Evidence, ...]) -> None:
    if len(given) > MAX_ITEMS:
        raise ValidationError(f"more than {MAX_ITEMS:,} passages")
    if len({one.number for one in given}) < len(given):
        raise ValidationError("two passages have the same number")
    for one in given:
        texts = (one.collection, one.document, one.title, one.source, one.text, one.query)
        _texts(f"passage {one.number}", texts)
        first, last = one.pages or (1, 1)
        sound = one.number > 0 and one.chunk >= 0 and 0 <= one.start <= one.end
        sound = sound and 0 < first <= last and len(one.page_starts) <= last - first
        if not sound or not math.isfinite(one.score):
            raise ValidationError(f"passage {one.number} is not one")


def _list(name: str, given: tuple[str, ...]) -> None:
    if len(given) > MAX_ITEMS:
        raise ValidationError(f"more than {MAX_ITEMS:,} {name}")
    _texts(name, given)


def _texts(where: str, texts: Iterable[str]) -> None:
    if any(len(text) > MAX_CHARACTERS for text in texts):
        raise ValidationError(f"{where}: a text of more than {MAX_CHARACTERS:,} characters")
