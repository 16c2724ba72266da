"""Converts search errands and their rounds to and from gRPC messages, and validates those."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.errors import ValidationError
from penstock.librarian.v1 import librarian_pb2 as pb
from penstock.model.answer import Evidence, Plan, Round
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
    _list("queries", errand.asked)
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


Message = TypeVar("Message", pb.Errand, pb.Round)


def errand_message(errand: Errand) -> pb.Errand:
    """Encode an errand, without its end, which is the deadline of the call."""
    check_errand(errand)
    return _made("the errand", lambda: _errand_message(errand))


def errand_of(message: pb.Errand, ends_at: float) -> Errand:
    collections = tuple(message.collections.names) if message.HasField("collections") else None
    errand = Errand(
        tenant=message.tenant,
        question=message.question,
        plan=Plan(tuple(message.plan.queries), message.plan.enough),
        ends_at=ends_at,
        collections=collections,
        found=tuple(map(_evidence_of, message.found)),
        rounds_done=message.rounds_done,
        asked=tuple(message.asked),
    )
    check_errand(errand)
    return errand


def round_message(turn: Round) -> pb.Round:
    check_round(turn)
    return _made("the round", lambda: _round_message(turn))


def round_of(message: pb.Round) -> Round:
    turn = Round(
        number=message.number,
        queries=tuple(message.queries),
        evidence=tuple(map(_evidence_of, message.evidence)),
        missing=tuple(message.missing),
        enough=message.enough,
        note=message.note,
        next=tuple(message.next),
    )
    check_round(turn)
    return turn


def _made(what: str, make: Callable[[], Message]) -> Message:
    try:
        message = make()
    except ValueError as error:  # half a character, a number over 32 bits
        raise ValidationError(f"{what} cannot be sent: {error}") from None
    if message.ByteSize() > MESSAGE_BYTES:
        raise ValidationError(f"{what} is over {MESSAGE_BYTES:,} bytes")
    return message


def _errand_message(errand: Errand) -> pb.Errand:
    names = errand.collections
    return pb.Errand(
        tenant=errand.tenant,
        question=errand.question,
        plan=pb.Plan(queries=errand.plan.queries, enough=errand.plan.enough),
        collections=None if names is None else pb.Collections(names=names),
        found=map(_evidence_message, errand.found),
        rounds_done=errand.rounds_done,
        asked=errand.asked,
    )


def _round_message(turn: Round) -> pb.Round:
    return pb.Round(
        number=turn.number,
        queries=turn.queries,
        evidence=map(_evidence_message, turn.evidence),
        missing=turn.missing,
        enough=turn.enough,
        note=turn.note,
        next=turn.next,
    )


_PLAIN = (
    *("number", "collection", "document", "title", "source", "chunk", "start", "end"),
    *("text", "score", "query", "round"),
)
"""What a passage and its message call by the same name."""


def _evidence_message(one: Evidence) -> pb.Evidence:
    pages = None
    if one.pages is not None:
        pages = pb.Pages(first=one.pages[0], last=one.pages[1], starts=one.page_starts)
    return pb.Evidence(pages=pages, **{name: getattr(one, name) for name in _PLAIN})


def _evidence_of(message: pb.Evidence) -> Evidence:
    pages = message.pages
    return Evidence(
        **{name: getattr(message, name) for name in _PLAIN},
        pages=(pages.first, pages.last) if message.HasField("pages") else None,
        page_starts=tuple(pages.starts),
    )
