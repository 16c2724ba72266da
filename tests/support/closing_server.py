"""Ending an asyncio server while others are connecting to it."""

from __future__ import annotations

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """Close it once those who were just let in are its connections: whoever is between the two when
    it is closed is dropped by asyncio, with a warning that fails some later test."""
    loop = asyncio.get_running_loop()
    for one in server.sockets:
        loop.remove_reader(one.fileno())
    for _ in range(3):
        await asyncio.sleep(0)
    server.close()
