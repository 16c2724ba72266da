"""Cheap probes of dependencies in trouble, so that recovery is noticed within seconds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from urllib.parse import urlsplit

from penstock.engine.certificates import trusted
from penstock.ports.queue import Member

log = logging.getLogger("penstock.lanes")

PROBE_TIMEOUT = 2.0


async def probe_troubled(member: Member) -> None:
    """Probe the lanes whose turn it is, all at the same time."""
    due = await member.probes()
    async with asyncio.TaskGroup() as group:
        for lane, where in due:
            group.create_task(_probe(member, lane, where))


async def _probe(member: Member, lane: str, where: str) -> None:
    ok = await reachable(where)
    log.info("lane %s: probe of %s %s", lane, where, "passed" if ok else "failed")
    await member.probed(lane, ok)


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

    async with httpx2.AsyncClient(verify=trusted()) as client:
        return (await client.get(url)).status_code < 500
