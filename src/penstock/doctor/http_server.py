"""Checks the HTTP server: its port, and whether there is an API key."""

from __future__ import annotations

import errno
import socket

from penstock.doctor.context import Case, in_thread
from penstock.doctor.diagnosis import Diagnosis, broken, ok, warning
from penstock.model.server import ServerConfig

ANSWER_SECONDS = 3.0
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (to ask, not to listen)


async def look(case: Case) -> list[Diagnosis]:
    config = case.config.server
    place = f"{config.host}:{config.port}"
    trouble = await in_thread(_trouble, config)
    if trouble is None:
        return [ok("server", f"{place} is free")]
    if trouble.errno != errno.EADDRINUSE:
        found = f"it cannot listen on {place}: {trouble.strerror}"
        return [broken("server", found, "correct server.host and server.port")]
    if await _is_ours(config):
        return [ok("server", f"a Penstock serves on {place}")]
    found, advice = f"another program listens on {place}", "end it, or set server.port to another"
    if "server" in case.config.sources:
        return [broken("server", found, advice)]
    return [warning("server", found, advice)]


def _trouble(config: ServerConfig) -> OSError | None:
    """What keeps a program from listening there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error
    return None


async def _is_ours(config: ServerConfig) -> bool:
    import httpx2

    host = _ANYWHERE.get(config.host, config.host)
    shown = f"[{host}]" if ":" in host else host
    async with httpx2.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False) as client:
        try:
            answer = await client.get(f"http://{shown}:{config.port}/healthz")
            return bool(answer.json() == {"status": "ok"})
        except (httpx2.HTTPError, ValueError):
            return False
