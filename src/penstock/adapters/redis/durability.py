"""Whether a server can be trusted with jobs."""

from __future__ import annotations

import logging
import re

from penstock.adapters.redis.connections import Connections
from penstock.model.errors import QueueUnavailable, QueueUnusable

log = logging.getLogger("penstock.redis")

OLDEST = (7, 0)
"""Scripts say what they may do since Redis 7.0 (and in every Valkey)."""


def parse_info(text: str) -> dict[str, str]:
    """What INFO answers, by name."""
    return dict(re.findall(r"^(\w+):(.*?)\r?$", text, re.MULTILINE))


def version_of(info: dict[str, str]) -> tuple[int, ...] | None:
    """Of Redis, which Valkey also names: the one it is like."""
    text = info.get("redis_version")
    return None if text is None else tuple(int(part) for part in text.split(".")[:2])


async def check_server(connections: Connections, allow_volatile: bool) -> None:
    """QueueUnusable for a server that is too old, or that may lose jobs it has accepted."""
    shown = connections.address.shown
    try:
        text = await connections.command("INFO")
    except QueueUnusable:
        await connections.command("PING")  # a login that fails everywhere fails here
        log.warning("%s does not tell how it is configured: it may lose jobs", shown)
        return
    info = parse_info(text)
    if (version_of(info) or (0,)) < OLDEST:
        raise QueueUnusable(
            f"{shown} is version {info.get('redis_version')}; Redis 7.0 or Valkey 7.2 is needed"
        )
    if info.get("loading") == "1":  # while it does, it says that it has no append-only file
        raise QueueUnavailable(f"{shown} is loading its data; it answers when it has")
    if allow_volatile:
        return
    if info.get("aof_enabled") != "1":
        raise QueueUnusable(
            f"{shown} keeps jobs in memory only and would lose them in a restart; set "
            "`appendonly yes` on the server, or allow_volatile: true if that is acceptable"
        )
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise QueueUnusable(
            f"{shown} deletes jobs when its memory is full (maxmemory-policy {policy}); set "
            "`maxmemory-policy noeviction`, or allow_volatile: true if that is acceptable"
        )
