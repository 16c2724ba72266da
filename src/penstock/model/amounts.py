"""Amounts that a provider counts of a request: tokens, and money.

Whole numbers, so that sums are exact; money is in millionths of the lane's currency.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.errors import ValidationError

MICRO = 1_000_000
"""Of money: millionths of the currency's unit."""
MOST = 10**12
NAMES = ("tokens", "input_tokens", "output_tokens", "cost")

AmountValue = int | Mapping[str, int | float]
"""An amount as it is given: so many tokens, or a mapping of `tokens`, `input_tokens`,
`output_tokens` and `cost`."""


class Amounts(NamedTuple):
    """Tokens, and money, that a request may use at most, or has used."""

    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    """In millionths."""

    @classmethod
    def of(
        cls,
        tokens: int | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost: float | None = None,
    ) -> Amounts:
        """From what is known of them: where only the sum is, it bounds both of its parts.
        ValidationError for what cannot be an amount."""
        for name, value in zip(NAMES, (tokens, input_tokens, output_tokens, cost), strict=True):
            _check(name, value)
        if tokens is None:
            tokens = (input_tokens or 0) + (output_tokens or 0)
        sent = max(0, tokens - (output_tokens or 0)) if input_tokens is None else input_tokens
        said = max(0, tokens - (input_tokens or 0)) if output_tokens is None else output_tokens
        return cls(tokens, sent, said, math.ceil((cost or 0) * MICRO - 1e-6))

    @classmethod
    def parse(cls, value: Any) -> Amounts:
        """See `AmountValue`."""
        if isinstance(value, Amounts):
            return value
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in NAMES]
            if unknown:
                raise ValidationError(f"{unknown[0]!r} is not one of {', '.join(NAMES)}")
            return cls.of(**value)
        if value is None:
            raise ValidationError("an amount is a number of tokens, or a mapping, not None")
        return cls.of(value)

    @classmethod
    def read(cls, text: str | None) -> Amounts | None:
        """As a job's row keeps it; None: it has none."""
        return cls(*json.loads(text)) if text else None

    @property
    def nothing(self) -> Amounts:
        """What is used of it where the request was not made."""
        return NOTHING

    @property
    def text(self) -> str:
        return json.dumps(list(self))


NOTHING = Amounts()


def _check(name: str, value: Any) -> None:
    if value is None:
        return
    whole = name != "cost"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ValidationError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}")
    if not 0 <= value <= MOST:
        raise ValidationError(f"{name} must be from 0 to {MOST:,}, not {value!r}")
