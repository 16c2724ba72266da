"""Budgets in Redis. Scripts spend of them; what needs a calendar is done here."""

from __future__ import annotations

import json
from typing import Any

from penstock.adapters.redis.connections import Connections
from penstock.lanes import budgets as rules
from penstock.model.budget import BudgetConfig, BudgetState


async def read(connections: Connections, now: float) -> list[BudgetState]:
    """See `penstock.ports.queue.JobQueue.budgets`."""
    states = [state_of(*told) for told in await connections.call("budgets", {})]
    for state in states:
        rules.roll(state, now)
    return sorted(states, key=lambda state: state.payer)


async def store(
    connections: Connections,
    payer: str,
    config: BudgetConfig | None,
    configured: str | None,
    now: float,
) -> bool:
    """See `penstock.ports.queue.JobQueue.set_budget`."""
    while True:
        flat = await connections.command("HGETALL", f"{connections.address.tag}:budget:{payer}")
        ask: dict[str, Any] = {"payer": payer}
        known = state_of(payer, flat) if flat else None
        before = {} if known is None else _fields(known)
        if known is not None:
            ask["ends"] = _text(known.ends)
        if config is not None:
            state = rules.fresh(payer, config, now) if known is None else known
            if known is not None:
                rules.change(state, config, now)
            state.configured = configured or state.configured
            # What is spent meanwhile is not to be overwritten.
            after = _fields(state)
            ask["fields"] = {name: after[name] for name in after if after[name] != before.get(name)}
            if not ask["fields"]:
                return True
        elif known is None:
            return False
        if await connections.call("budget", ask):
            return known is not None


async def begin_anew(connections: Connections, payer: str, flat: Any, now: float) -> None:
    """Its period is over at this time of the server. If somebody else sees to that, it is done."""
    state = state_of(payer, flat)
    ends, before = _text(state.ends), _fields(state)
    rules.roll(state, now)
    after = _fields(state)
    changed = {name: after[name] for name in after if after[name] != before[name]}
    await connections.call("budget", {"payer": payer, "ends": ends, "fields": changed})


def state_of(payer: str, flat: Any) -> BudgetState:
    """From names and values in turn, or a mapping."""
    row = flat
    if not isinstance(flat, dict):
        row = dict(zip(flat[::2], flat[1::2], strict=True))

    def limit(name: str) -> int | None:
        return int(row[name]) if row[name] else None

    return BudgetState(
        payer,
        limit("tokens_limit"),
        limit("cost_limit"),
        row["per"],
        row["timezone"],
        float(row["begins"]),
        float(row["ends"]),
        int(row["tokens"]),
        int(row["cost"]),
        int(row["warned"]),
        json.loads(row["lanes"]),
        row["configured"] or None,
    )


def _fields(state: BudgetState) -> dict[str, str]:
    limits = {"tokens_limit": state.tokens_limit, "cost_limit": state.cost_limit}
    return {
        **{name: "" if value is None else str(value) for name, value in limits.items()},
        "per": state.per,
        "timezone": state.timezone,
        "begins": _text(state.begins),
        "ends": _text(state.ends),
        "tokens": str(state.tokens),
        "cost": str(state.cost),
        "warned": str(state.warned),
        "lanes": json.dumps(state.lanes),
        "configured": state.configured or "",
    }


def _text(number: float) -> str:
    """As scripts write it, too."""
    return f"{number:.17g}"
