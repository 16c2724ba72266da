"""The amount that a request reserves, and the one that it has used."""

from __future__ import annotations

import json
import math

from penstock.model.amounts import MICRO, NOTHING, Amounts, AmountValue
from penstock.ports.receipts import Usage, usage_of


class Bill:
    """Goes with a request to its lane: reserved with its permit, and settled when that is back."""

    __slots__ = ("amount", "spent")

    def __init__(self, amount: Amounts | None = None) -> None:
        self.amount = amount
        """None: nothing is said of it before, and nothing reserved."""
        self.spent: Amounts | None = None
        """None: it is not known, and what is reserved stands."""

    @classmethod
    def of(cls, amount: AmountValue | Bill | None) -> Bill | None:
        if amount is None or isinstance(amount, Bill):
            return amount
        return cls(Amounts.parse(amount))

    def used(
        self,
        tokens: int | None = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost: float | None = None,
    ) -> None:
        """So much it was. Of what is not said, tokens or money, it is what was reserved."""
        said = Amounts.of(tokens, input_tokens, output_tokens, cost)
        reserved = self.spent or self.amount or NOTHING
        if tokens is None and input_tokens is None and output_tokens is None:
            said = reserved._replace(cost=said.cost)
        self.spent = said if cost is not None else said._replace(cost=reserved.cost)

    def nothing(self) -> None:
        """Nothing was done."""
        self.spent = NOTHING

    def read(self, body: bytes) -> None:
        """As an answer in JSON says under `usage`, if it does."""
        if b'"usage"' in body:
            try:
                self.told(usage_of(json.loads(body)))
            except ValueError:
                return  # no JSON, and so it says nothing: what is reserved stands

    def told(self, usage: Usage) -> None:
        sent, said = usage.tokens_in, usage.tokens_out
        if sent is not None or said is not None:
            self.spent = None
            self.used(input_tokens=sent or 0, output_tokens=said or 0, cost=usage.price)
        elif usage.price is not None:
            reserved = self.amount or NOTHING
            self.spent = reserved._replace(cost=math.ceil(usage.price * MICRO))
