"""The amount that a request reserves, and the one that it has used."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from penstock.model.amounts import MICRO, MOST, NOTHING, Amounts, AmountValue
from penstock.ports.receipts import Usage, usage_in, usage_of

WHOLE_BYTES = 65_536
"""A larger answer is not read as a whole, only what it says under `usage`."""


class Bill:
    """Goes with a request to its lane: reserved with its permit, and settled when that is back."""

    __slots__ = ("amount", "cost", "headers", "model", "spent")

    def __init__(self, amount: Amounts | None = None, model: str = "") -> None:
        self.amount = amount
        """None: nothing is said of it before, and nothing reserved."""
        self.spent: Amounts | None = None
        """None: it is not known, and what is reserved stands."""
        self.headers: Mapping[str, str] | None = None
        """Of the answer: they may say what is left of the provider's limits."""
        self.cost: int | None = None
        """Of that, in millionths, as it was told; None: it was not, and its price may be known."""
        self.model = model
        """The model that is asked; empty: it is not known."""

    def begin(self) -> None:
        """A request is made, of which nothing is told yet."""
        self.spent = self.cost = self.headers = None

    @property
    def empty(self) -> bool:
        """Whether there was nothing to pay for."""
        return self.spent == NOTHING and not self.cost

    @classmethod
    def of(cls, amount: AmountValue | Bill | None, model: str = "") -> Bill | None:
        if amount is None or isinstance(amount, Bill):
            return amount
        return cls(Amounts.parse(amount), model)

    def used(
        self,
        tokens: int | None = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost: float | None = None,
        model: str | None = None,
    ) -> None:
        """So much it was. Of what is not said, tokens or money, it is what was reserved."""
        said = Amounts.of(tokens, input_tokens, output_tokens, cost)
        self.cost = None if cost is None else said.cost
        self.model = model or self.model
        reserved = self.spent or self.amount or NOTHING
        if tokens is None and input_tokens is None and output_tokens is None:
            said = reserved._replace(cost=said.cost)
        self.spent = said if cost is not None else said._replace(cost=reserved.cost)

    def nothing(self) -> None:
        """Nothing was done."""
        self.spent, self.cost = NOTHING, 0

    def read(self, body: bytes) -> None:
        """As an answer in JSON says under `usage`, if it does."""
        if len(body) > WHOLE_BYTES:  # vectors, by the thousand: whoever asked reads them, once
            self.told(usage_in(body))
            return
        try:
            answer = json.loads(body) if b'"usage"' in body else None
            self.told(usage_of(answer))
        except (ValueError, RecursionError):
            return  # no JSON, or nonsense, and so it says nothing: what is reserved stands
        model = answer.get("model") if isinstance(answer, dict) else None
        if not self.model and isinstance(model, str):
            self.model = model

    def told(self, usage: Usage) -> None:
        sent, said = usage.tokens_in, usage.tokens_out
        if sent is not None or said is not None:
            self.spent = None
            self.used(input_tokens=sent or 0, output_tokens=said or 0, cost=usage.price)
        elif usage.price is not None and usage.price <= MOST:
            reserved = self.amount or NOTHING
            self.cost = math.ceil(usage.price * MICRO)
            self.spent = reserved._replace(cost=self.cost)
