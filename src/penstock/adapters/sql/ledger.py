"""The ledger in a database: single charges, and the sums of days."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.adapters.sql.dialect import Row, Sql
from penstock.ports.ledger import (
    IN_DETAIL,
    MAX_ROWS,
    Charge,
    Charged,
    Payer,
    UsageQuery,
    UsageSum,
    day_name,
    folded,
)

if TYPE_CHECKING:
    from penstock.adapters.sql.budgets import LockedBudgets, Woken

FORGET_LIMIT = 500
FIGURES = ("requests", "tokens", "input_tokens", "output_tokens", "cost", "unpriced", "reserved")


class _Place(NamedTuple):
    """A row of `usage_days`."""

    day: int
    tenant: str
    kind: str
    lane: str
    model: str


async def charge(tx: Sql, charges: Sequence[Charge]) -> tuple[Charged, Woken]:
    """See `penstock.ports.queue.JobQueue.charge`; and what lets those go on who may spend again.
    Rows are locked in the order of their keys, budgets before charges."""
    sums: dict[_Place, Counter[str]] = defaultdict(Counter)
    left = folded(charges)
    budgets = None
    if await tx.one("any_budget"):
        from penstock.adapters.sql.budgets import LockedBudgets  # few queues have any

        budgets = await LockedBudgets.of(tx, left)
    while left:
        rows = await tx.fetch("known_charges", ids=[one.id for one in left])
        known = {row["id"]: row for row in rows}
        new = [one for one in left if one.id not in known and not one.void]
        if budgets is not None:
            new = budgets.admitted(new)
        await _settle(tx, [(one, known[one.id]) for one in left if one.id in known], sums, budgets)
        entered = await _enter(tx, new)
        for one in new:
            if one.id in entered:
                _count(sums, one, 1)
        # Somebody else has entered it in this moment: then it is known now.
        left = [one for one in new if one.id not in entered]
        if budgets is not None:
            budgets.take_back(left)
    changed = [
        {**place._asdict(), **{figure: by[figure] for figure in FIGURES}}
        for place, by in sorted(sums.items())
        if any(by.values())
    ]
    if changed:
        await tx.execute_many("add_usage", changed)
    if budgets is None:
        return Charged({}, False, []), None
    return await budgets.save()


async def _enter(tx: Sql, new: Sequence[Charge]) -> set[str]:
    if not new:
        return set()
    rows = [
        (
            *(one.id, one.day, one.at, *one.payer, one.lane, one.model, one.tokens),
            *(one.input_tokens, one.output_tokens, one.cost, int(one.reserved)),
        )
        for one in new
    ]
    return {name for (name,) in await tx.fetch("add_charges", rows=json.dumps(rows))}


async def _settle(
    tx: Sql,
    found: Sequence[tuple[Charge, Row]],
    sums: dict[_Place, Counter[str]],
    budgets: LockedBudgets | None,
) -> None:
    """Settle those that are still reserved, on the day that they were reserved on."""
    told, dropped = [], []
    for one, row in found:
        if one.reserved or not row["reserved"]:
            continue
        before = _charge_of(one.id, row)
        _count(sums, before, -1)
        if one.void:
            dropped.append(one.id)
        else:
            now = before._replace(
                model=one.model or before.model,
                tokens=one.tokens,
                input_tokens=one.input_tokens,
                output_tokens=one.output_tokens,
                cost=one.cost,
                reserved=False,
            )
            _count(sums, now, 1)
            told.append(now._asdict())
        if budgets is not None:
            budgets.settled(one, before)
    if told:
        await tx.execute_many("settle_charge", told)
    if dropped:
        await tx.execute("drop_charges", ids=dropped)


def _charge_of(name: str, row: Row) -> Charge:
    return Charge(
        name,
        row["at"],
        Payer(row["tenant"], kind=row["kind"]),
        row["lane"],
        row["model"],
        row["tokens"],
        row["input_tokens"],
        row["output_tokens"],
        row["cost"],
        bool(row["reserved"]),
    )


def _count(sums: dict[_Place, Counter[str]], one: Charge, sign: int) -> None:
    place = _Place(one.day, one.payer.tenant, one.payer.kind, one.lane, one.model)
    tokens = (one.tokens, one.input_tokens, one.output_tokens)
    figures = (1, *tokens, one.cost or 0, int(one.cost is None), int(one.reserved))
    for name, figure in zip(FIGURES, figures, strict=True):
        sums[place][name] += sign * figure


_SUMS = "sum(requests), sum(tokens), sum(input_tokens), sum(output_tokens), sum(cost)"
_SUMS_OF_DAYS = f"{_SUMS}, sum(unpriced), sum(reserved) FROM penstock.usage_days"
_SUMS_OF_CHARGES = (
    "count(*), sum(tokens), sum(input_tokens), sum(output_tokens), sum(coalesce(cost, 0)), "
    "count(*) - count(cost), sum(reserved) FROM penstock.charges"
)


async def usage(tx: Sql, query: UsageQuery) -> list[UsageSum]:
    """See `penstock.ports.queue.JobQueue.usage`."""
    detailed = query.by in IN_DETAIL
    source = _SUMS_OF_CHARGES if detailed else _SUMS_OF_DAYS
    some = "true" if detailed else "requests > 0"
    order = "1 DESC" if query.by == "day" else "6 DESC, 3 DESC, 1"
    rows = await tx.fetch(
        f"SELECT {query.by}, {source} WHERE {some} AND {{usage_where}} GROUP BY 1"
        f" ORDER BY {order} LIMIT :most",
        tenant=query.tenant,
        since=query.since,
        until=query.until,
        most=MAX_ROWS,
    )
    by_day = query.by == "day"
    return [UsageSum(day_name(row[0]) if by_day else row[0], *map(int, row[1:])) for row in rows]


async def forget(
    change: Callable[[Callable[[Sql], Awaitable[int]]], Awaitable[int]], before: float
) -> None:
    """Delete single charges from before a time."""

    async def chunk(tx: Sql) -> int:
        return await tx.execute("forget_charges", before=before, limit=FORGET_LIMIT)

    while await change(chunk) == FORGET_LIMIT:
        pass
