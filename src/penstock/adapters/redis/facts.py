"""Inspects a Redis or Valkey server for the doctor. Read-only."""

from __future__ import annotations

import time
from typing import NamedTuple

from penstock.adapters.database_facts import ClockSkew
from penstock.adapters.redis.address import RedisAddress
from penstock.adapters.redis.connections import Connections
from penstock.adapters.redis.durability import parse_info, version_of
from penstock.errors import QueueUnusable


class RedisFacts(NamedTuple):
    """None: the server does not tell this user."""

    name: str | None
    """`Redis 7.0.15`, `Valkey 9.1.2`."""
    version: tuple[int, ...] | None
    """Which Redis it is, or claims to be like."""
    replica: bool
    loading: bool
    append_only: bool | None
    fsync: str | None
    """`always`, `everysec` or `no`."""
    eviction: str | None
    clock: ClockSkew
    exists: bool
    """There is a queue in the namespace."""


async def look(address: RedisAddress) -> RedisFacts:
    """QueueError where the server cannot be reached, or refuses."""
    connections = Connections(address)
    connections.open()
    try:
        sent = time.time()
        seconds, microseconds = await connections.command("TIME")
        clock = ClockSkew.of(sent, int(seconds) + int(microseconds) / 1e6)
        info = await _info(connections)
        append_only = info.get("aof_enabled")
        return RedisFacts(
            name=_name(info),
            version=version_of(info),
            replica=info.get("role") == "slave",
            loading=info.get("loading") == "1",
            append_only=None if append_only is None else append_only == "1",
            fsync=await _fsync(connections),
            eviction=info.get("maxmemory_policy"),
            clock=clock,
            exists=bool(await connections.command("EXISTS", f"{address.tag}:numbers")),
        )
    finally:
        await connections.close()


def _name(info: dict[str, str]) -> str | None:
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}" if "redis_version" in info else None


async def _info(connections: Connections) -> dict[str, str]:
    try:
        return parse_info(await connections.command("INFO"))
    except QueueUnusable:  # this user may not; the login itself was good for TIME
        return {}


async def _fsync(connections: Connections) -> str | None:
    try:
        answer = await connections.command("CONFIG", "GET", "appendfsync")
    except QueueUnusable:
        return None
    return str(answer[1]) if answer else None
