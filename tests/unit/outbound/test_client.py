"""The connection pools of a process."""

from typing import Any

from penstock.outbound.client import HttpClient

COMMON_SECONDS = 5.0
"""After so long llama.cpp, Node and uvicorn end an idle connection."""


async def test_idle_connections_are_given_up_well_before_common_servers_do() -> None:
    client = HttpClient()
    whole: Any = await client.get()
    guarded: Any = await client.guarded()
    for pool in (whole._transport._pool, guarded._pool):
        assert pool._keepalive_expiry < COMMON_SECONDS - 1.0
    await client.close()
