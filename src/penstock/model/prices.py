"""Price tables: what tokens of a model, or in a lane, cost from a day on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from penstock.errors import ConfigError
from penstock.model.section import check_fields

DAY = 86400
_SNAPSHOT = re.compile(r"[-@]\d{4}-?\d{2}-?\d{2}")
"""What providers put behind a model's name: the day of this version."""


@dataclass(slots=True, frozen=True)
class PriceConfig:
    """Price of a million tokens of a model, or in a lane, from a day on."""

    input: float | None = None
    """Price of a million input tokens, in the currency of all your prices."""
    output: float | None = None
    """Price of a million output tokens."""
    tokens: float | None = None
    """Price of a million tokens where both cost the same, as with embedders."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.input, self.output, self.tokens) == (None, None, None):
            raise ConfigError("a price needs input, output or tokens", setting="tokens")

    def cost(self, tokens: int, sent: int, said: int) -> int | None:
        """In millionths; None: it has no price for some of these."""
        parts = (
            (sent, self.tokens if self.input is None else self.input),
            (said, self.tokens if self.output is None else self.output),
            (max(0, tokens - sent - said), self.tokens),
        )
        total = 0.0
        for count, price in parts:
            if count and price is None:
                return None
            total += count * (price or 0.0)
        return math.floor(total + 0.5)


PriceTable = Mapping[str, Mapping[str, PriceConfig]]
"""By the name of a model or a lane, and the first day of each price."""


def check_prices(prices: PriceTable) -> None:
    """ConfigError for a day that is none."""
    for name, table in prices.items():
        for first in table:
            try:
                date.fromisoformat(first)
            except ValueError:
                raise ConfigError(
                    f"prices: {name}: {first!r} is no day such as 2026-01-31",
                    setting=f"prices.{name}.{first}",
                ) from None


def price_at(prices: PriceTable, model: str, lane: str, at: float) -> PriceConfig | None:
    """The price of a model, else of a lane, on the day (UTC) of this time; None: it is unknown."""
    day = datetime.fromtimestamp(at, UTC).date().isoformat()
    for name in (model, _SNAPSHOT.sub("", model), lane):
        known = [first for first in prices.get(name, ()) if first <= day]
        if known:
            return prices[name][max(known)]
    return None
