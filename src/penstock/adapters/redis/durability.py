"""Checks whether a server's persistence settings are safe for jobs."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from penstock.adapters.coalesce import Coalesced
from penstock.adapters.redis.connections import FAULTS, Channel, Connections
from penstock.adapters.redis.errors import explain
from penstock.errors import QueueUnavailable, QueueUnusable

log = logging.getLogger("penstock.redis")

OLDEST = (7, 0)
"""Scripts say what they may do since Redis 7.0 (and in every Valkey)."""
WAITAOF = (7, 2)
"""Can be asked to wait for its disk since Redis 7.2 (and in every Valkey)."""
SYNC_SECONDS = 4.0
"""How long the disk is waited for; less than an answer is."""
MAX_TOGETHER = 10_000


def parse_info(text: str) -> dict[str, str]:
    """What INFO answers, by name."""
    return dict(re.findall(r"^(\w+):(.*?)\r?$", text, re.MULTILINE))


def version_of(info: dict[str, str]) -> tuple[int, ...] | None:
    """Of Redis, which Valkey also names: the one it is like."""
    text = info.get("redis_version")
    return None if text is None else tuple(int(part) for part in text.split(".")[:2])


class Synced:
    """Waits until the server's append-only file has all that was written so far. Whoever asks while
    it waits for others is served by the next wait, together."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._channel = Channel(connections.make)
        self._together: Coalesced[None, None, None] = Coalesced(self._wait, MAX_TOGETHER)

    async def wait(self) -> None:
        """QueueUnavailable where it takes too long: what was written may be lost."""
        await self._together.ask(None, None)

    async def _wait(self, key: None, asked: Sequence[None]) -> Sequence[None]:
        address = self._connections.address
        try:
            # On a connection of its own, which it holds up. The server waits for what this
            # connection has written: something, after all that it is asked for.
            await self._channel.freshen()
            await self._channel.send(["HINCRBY", f"{address.tag}:numbers", "synced", 1])
            synced, _ = await self._channel.send(["WAITAOF", 1, 0, round(1000 * SYNC_SECONDS)])
        except FAULTS as error:
            raise explain(error, address.shown) from error
        if not synced:
            raise QueueUnavailable(
                f"{address.shown} has not written to its disk within {SYNC_SECONDS:g} s: what was "
                "enqueued is stored, but may be lost if the server dies now"
            )
        return [None] * len(asked)

    async def close(self) -> None:
        await self._channel.close()


async def check_server(
    connections: Connections, allow_volatile: bool, wait_aof: bool = False
) -> None:
    """QueueUnusable for a server that is too old, or that may lose jobs it has accepted, or that
    cannot be waited for although that is wanted."""
    shown = connections.address.shown
    try:
        text = await connections.command("INFO")
    except QueueUnusable:
        await connections.command("PING")  # a login that fails everywhere fails here
        log.warning("%s does not tell how it is configured: it may lose jobs", shown)
        return  # where it cannot wait, the first enqueue says so
    info = parse_info(text)
    if (version_of(info) or (0,)) < OLDEST:
        raise QueueUnusable(
            f"{shown} is version {info.get('redis_version')}; Redis 7.0 or Valkey 7.2 is needed"
        )
    if wait_aof and (version_of(info) or (0,)) < WAITAOF:
        raise QueueUnusable(
            f"{shown} is version {info.get('redis_version')}, which has no WAITAOF; wait_aof needs "
            "Redis 7.2 or Valkey. Use that, or set `appendfsync always` on the server instead"
        )
    if info.get("loading") == "1":  # while it does, it says that it has no append-only file
        raise QueueUnavailable(f"{shown} is loading its data; it answers when it has")
    if allow_volatile and not wait_aof:
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
