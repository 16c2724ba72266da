"""Probes dependencies of lanes in trouble, so that recovery is noticed within seconds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

from penstock import runtime
from penstock.ports.queue import Member

log = logging.getLogger("penstock.lanes")

PROBE_TIMEOUT = 2.0
FORGOTTEN_SECONDS = 300.0
"""A lane that was not probed for so long was well meanwhile: the next outage is news."""


class Prober:
    """The probes of a process. It logs what has changed: an outage may last for days."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, bool, float]] = {}
        """Of each lane: what was probed, whether that passed, and when."""

    async def probe(self, member: Member, due: Sequence[tuple[str, str]]) -> None:
        """Probe the lanes whose turn it is, and where, all at the same time."""
        async with asyncio.TaskGroup() as group:
            for lane, where in due:
                group.create_task(self._probe(member, lane, where))

    async def _probe(self, member: Member, lane: str, where: str) -> None:
        ok = await reachable(where)
        if self._is_news(lane, where, ok, runtime.monotonic()):
            log.info("lane %s: probe of %s %s", lane, where, "passed" if ok else "failed")
        await member.probed(lane, ok)

    def _is_news(self, lane: str, where: str, ok: bool, now: float) -> bool:
        recent = {
            lane: found for lane, found in self._found.items() if found[2] + FORGOTTEN_SECONDS > now
        }
        before = recent.get(lane)
        self._found = {**recent, lane: (where, ok, now)}
        return before is None or before[:2] != (where, ok)


async def reachable(where: str) -> bool:
    """Whether `where` answers: an http(s) URL with anything but a 5xx, a host:port or tcp URL
    by accepting a connection."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            if where.startswith(("http://", "https://")):
                return await _get(where)
            parts = urlsplit(where if "//" in where else f"tcp://{where}")
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return True
    except Exception as error:  # whatever keeps a probe from being made, it did not pass
        log.debug("probe of %s: %r", where, error)
        return False


async def _get(url: str) -> bool:
    import httpx2  # here, because most processes never probe

    from penstock.outbound.certificates import trusted

    async with httpx2.AsyncClient(verify=trusted()) as client:
        return (await client.get(url)).status_code < 500
