"""Receipts: what a call through our own gates was answered, for a rerun of its job to take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

USAGE_BYTES = 4096
_JSON = json.JSONDecoder()


class Usage(NamedTuple):
    """The cost of an answer, as it names it; None: it does not."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    price: float | None = None


@dataclass(slots=True, frozen=True)
class ReceiptRequest:
    """A call, as it is to be known again."""

    lane: str
    request: Any
    """What is asked, in JSON values and without credentials. Only a hash of it is stored, under a
    key of the queue."""
    model: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What people are shown of it."""
    kept: str | None = None
    """Where the caller stores the answer, and looks before it asks: see `Receipt.refer`."""


class ReceiptAnswer(NamedTuple):
    """The final answer to a call. It is stored, so no raw personal data may be in it."""

    value: Mapping[str, Any]
    """In JSON values."""
    usage: Usage = Usage()
    parameters: Mapping[str, Any] = {}
    """What people are shown of it, besides those of the request."""


ANSWERED = ReceiptAnswer({})


class Receipt(Protocol):
    """That of one call."""

    async def found(self) -> dict[str, Any] | None:
        """The answer that an earlier run got; None: it has to be asked."""
        ...

    async def keep(self, answer: ReceiptAnswer) -> dict[str, Any]:
        """Record the answer, and return it as a rerun gets it."""
        ...

    async def refer(self, answer: ReceiptAnswer = ANSWERED) -> None:
        """Record that it was answered, and not the answer, which is `kept` elsewhere. Without
        `found`: what is asked again leaves another receipt."""
        ...


class Receipts(Protocol):
    """The receipts of one job."""

    def begin(self, asked: ReceiptRequest) -> Receipt:
        """For one call. Not async: equal requests are counted in the order in which they are
        written."""
        ...


class NoReceipt:
    """For a call outside of jobs, which nothing runs again."""

    async def found(self) -> None:
        return None

    async def keep(self, answer: ReceiptAnswer) -> dict[str, Any]:
        return dict(answer.value)

    async def refer(self, answer: ReceiptAnswer = ANSWERED) -> None:
        pass


class NoReceipts:
    """Where there is no job."""

    def begin(self, asked: ReceiptRequest) -> NoReceipt:
        return NoReceipt()


OpenReceipts = Callable[[], Receipts]


def usage_of(answer: Any) -> Usage:
    """What a model's answer says under `usage`, whatever else it is."""
    told = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(told, dict):
        return Usage()
    sent = _number(told, "prompt_tokens", "input_tokens")
    said = _number(told, "completion_tokens", "output_tokens")
    return Usage(
        None if sent is None else int(sent),
        None if said is None else int(said),
        _number(told, "cost"),
    )


def usage_in(body: bytes) -> Usage:
    """The same, of an answer in JSON that is not read for it: an embedder's is long."""
    _, found, rest = body.rpartition(b'"usage"')
    told = rest[:USAGE_BYTES].decode(errors="replace").lstrip(" \t\r\n:")
    try:
        return usage_of({"usage": _JSON.raw_decode(told)[0]}) if found else Usage()
    except (ValueError, RecursionError):
        return Usage()


def _number(told: Mapping[str, Any], *names: str) -> float | None:
    for name in names:
        value = told.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
            return value
    return None
