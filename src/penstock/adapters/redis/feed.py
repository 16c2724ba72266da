"""The feed of a tenant: the entries of all its logs, in one order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.adapters.feed_position import foreign, parse
from penstock.adapters.redis.connections import Connections
from penstock.model.change import Change
from penstock.ports.queue import FEED_SECONDS, FeedEntry

FORM = r"r(\d{1,18})-(\d{1,18})"
"""Milliseconds on the server's clock, and a count within them."""


async def read(
    connections: Connections, tenant: str, after: str | None, limit: int, now: float
) -> list[FeedEntry]:
    place = "0-0"
    if after is not None:
        time, count = parse(FORM, after)
        if int(time) > (now + FEED_SECONDS) * 1000:
            raise foreign(after)
        place = f"{time}-{count}"
    rows = await connections.command(
        "XRANGE", _key(connections, tenant), f"({place}", "+", "COUNT", limit
    )
    return [_fed(*row) for row in rows]


async def end(connections: Connections, tenant: str) -> str:
    rows = await connections.command("XREVRANGE", _key(connections, tenant), "+", "-", "COUNT", 1)
    return f"r{rows[0][0]}" if rows else "r0-0"


def _key(connections: Connections, tenant: str) -> str:
    return f"{connections.address.tag}:feed:{tenant}"


def _fed(position: str, fields: Sequence[Any]) -> FeedEntry:
    told = dict(zip(fields[::2], fields[1::2], strict=True))
    at, what, job_id, data = json.loads(told["entry"])
    return FeedEntry(
        f"r{position}", Change(told["log"], int(told["version"]), at, what, job_id, data)
    )
