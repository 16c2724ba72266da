"""Usage: tokens and money by day, tenant, task, job, kind, lane or model."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from penstock.model.amounts import MICRO
from penstock.ports.ledger import UsageBy, UsageSum
from penstock.wire.view import WireView

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a table calculator would take for one."""


@dataclass(slots=True, frozen=True)
class UsageView(WireView):
    """Sum of what one tenant has spent, or was spent on one model, and so on."""

    name: str
    """Of what it is the sum; a day is written 2026-01-31. Empty: not known."""
    requests: int
    tokens: int
    input_tokens: int
    output_tokens: int
    """With the input tokens less than all, where it was not told which is which."""
    cost: float | None
    """Of the requests whose price is known; None: of none it is."""
    unpriced: int
    """How many requests are of unknown price."""
    reserved: int
    """How many requests have not told their use, as those that were killed: they are counted with
    what was reserved for them."""


@dataclass(slots=True, frozen=True)
class UsageList(WireView):
    by: UsageBy
    usage: Sequence[UsageView]
    """Days from the newest on; others from the dearest on, a thousand at most."""


def usage_list(by: UsageBy, sums: Sequence[UsageSum]) -> UsageList:
    return UsageList(by, [usage_view(one) for one in sums])


def usage_view(one: UsageSum) -> UsageView:
    unknown = one.unpriced == one.requests
    return UsageView(**{**one._asdict(), "cost": None if unknown else one.cost / MICRO})


def usage_csv(found: UsageList) -> str:
    """A table with a line for each sum. What is unknown is empty."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    names = list(UsageView.__dataclass_fields__)
    table.writerow([found.by, *names[1:]])
    for one in found.usage:
        name, *figures = astuple(one)
        table.writerow([f"'{name}" if name.startswith(FORMULAS) else name, *figures])
    return text.getvalue()
