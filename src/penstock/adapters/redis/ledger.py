"""The ledger in Redis: the newest charges, and the sums of days."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any

from penstock.adapters.redis import budgets
from penstock.adapters.redis.connections import Connections
from penstock.model.budget import BudgetState
from penstock.ports.ledger import (
    DAY,
    IN_DETAIL,
    MAX_ROWS,
    Charge,
    Charged,
    UsageQuery,
    UsageSum,
    day_name,
    folded,
)

MOST = 100_000
"""Charges that are kept apart; of older ones only the sums are left."""
AT_ONCE = 200
"""Charges in one trip, so that nobody else waits long for the server."""
UNKNOWN = -1
_FIGURES = 7
_PLACES = {"tenant": 0, "kind": 1, "lane": 2, "model": 3}
"""Of a sum's name."""
_FIELDS = {"task": 6, "job": 7}
"""Of a charge as `charge.lua` has it."""


async def charge(connections: Connections, charges: Sequence[Charge]) -> Charged:
    """See `penstock.ports.queue.JobQueue.charge`."""
    rows = [_row(one) for one in folded(charges)]
    refused: dict[str, BudgetState] = {}
    some, told = False, list[BudgetState]()
    for first in range(0, len(rows), AT_ONCE):
        ask = {"charges": rows[first : first + AT_ONCE], "most": MOST}
        while (answer := await connections.call("charge", ask))[0] == "over":
            for payer, flat in answer[1]:
                await budgets.begin_anew(connections, payer, flat, float(answer[2]))
        some = some or bool(answer[0])
        refused |= {name: budgets.state_of(*budget) for name, budget in answer[1]}
        told += [budgets.state_of(*budget) for budget in answer[2]]
    return Charged(refused, some, told)


def _row(one: Charge) -> list[Any]:
    cost = UNKNOWN if one.cost is None else one.cost
    tokens = (one.tokens, one.input_tokens, one.output_tokens, cost)
    place = (one.at, one.day, *one.payer, one.lane, one.model)
    return [one.id, one.reserved, one.void, *place, *tokens]


async def usage(connections: Connections, query: UsageQuery) -> list[UsageSum]:
    """See `penstock.ports.queue.JobQueue.usage`."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * _FIGURES)
    source = _charges if query.by in IN_DETAIL else _days
    async for name, figures in source(connections, query):
        sums[name] = [a + b for a, b in zip(sums[name], figures, strict=True)]
    found = [UsageSum(name, *figures) for name, figures in sums.items() if figures[0]]
    if query.by == "day":
        found.sort(key=lambda one: one.name, reverse=True)
    else:
        found.sort(key=lambda one: (-one.cost, -one.tokens, one.name))
    return found[:MAX_ROWS]


async def _days(
    connections: Connections, query: UsageQuery
) -> AsyncIterator[tuple[str, list[int]]]:
    tag = connections.address.tag
    days = await connections.command("ZRANGEBYSCORE", f"{tag}:usage_days", query.since, query.until)
    for day in map(int, days):
        flat = await connections.command("HGETALL", f"{tag}:usage:{day}")
        told = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        for field, value in told:
            *name, number = field.split("\n")
            if query.tenant in (None, name[0]):
                figures = [0] * _FIGURES
                figures[int(number) - 1] = int(value)
                yield day_name(day) if query.by == "day" else name[_PLACES[query.by]], figures


async def _charges(
    connections: Connections, query: UsageQuery
) -> AsyncIterator[tuple[str, list[int]]]:
    tag, first = connections.address.tag, 0
    between = (query.since * DAY, f"({(query.until + 1) * DAY}")
    while True:
        ids = await connections.command(
            "ZRANGEBYSCORE", f"{tag}:charged", *between, "LIMIT", first, AT_ONCE
        )
        if not ids:
            return
        first += len(ids)
        for text in await connections.command("HMGET", f"{tag}:charges", *ids):
            if text is None:  # forgotten in this moment
                continue
            _, reserved, _, _, _, tenant, *_ = one = json.loads(text)
            tokens, sent, said, cost = map(int, one[-4:])
            if query.tenant in (None, tenant):
                figures = [1, tokens, sent, said, max(0, cost), int(cost < 0), int(reserved)]
                yield one[_FIELDS[query.by]], figures


async def forget(connections: Connections, before: float) -> None:
    """Delete charges from before a time."""
    tag = connections.address.tag
    while ids := await connections.command(
        "ZRANGEBYSCORE", f"{tag}:charged", "-inf", f"({before!r}", "LIMIT", 0, AT_ONCE
    ):
        await connections.command("HDEL", f"{tag}:charges", *ids)
        await connections.command("ZREM", f"{tag}:charged", *ids)
