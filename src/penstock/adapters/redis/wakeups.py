"""Wake-ups over pub/sub: one subscription per process, any number of listeners.

A script publishes after it has written, so a wake-up never comes before the change can be read.
A message can be lost with its connection; so after each reconnect every listener is woken.
"""

from __future__ import annotations

import asyncio
import logging
import random

from redis import exceptions

from penstock.adapters.listener import Listeners
from penstock.adapters.redis.connections import ANSWER_SECONDS, Connections, RedisConnection
from penstock.aio import end_tasks
from penstock.ports.queue import Topic

log = logging.getLogger("penstock.redis")

QUIET_SECONDS = 2.0
"""After so long without a word the server is asked whether it is there, and given as long again
to answer: a connection can die without a sign."""
RECONNECT_FIRST, RECONNECT_CAP = 0.1, 1.0

_random = random.Random()  # noqa: S311 (jitter, not a secret)


class Wakeups(Listeners):
    """Hears wake-ups from `open` until `close`, however often the server goes away."""

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections
        self._shown = connections.address.shown
        tag = connections.address.tag
        self._channels = {f"{tag}:{topic.value}": topic for topic in Topic}
        self._hearing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Returns once the subscription stands."""
        self._first = await self._subscribe()
        self._hearing = asyncio.create_task(self._hear(self._first), name="penstock-wakeups")

    async def close(self) -> None:
        if self._hearing is not None:
            await end_tasks([self._hearing])
            self._hearing = None
            await self._first.disconnect(nowait=True)  # a task that never began has not done it

    async def _subscribe(self) -> RedisConnection:
        connection = self._connections.make()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.connect()
                await connection.send_command("SUBSCRIBE", *self._channels)
                for _ in self._channels:
                    await connection.read_response()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def _hear(self, connection: RedisConnection) -> None:
        while True:
            try:
                await self._hear_until_lost(connection)
            except (exceptions.RedisError, OSError, TimeoutError) as error:
                log.debug("the wake-ups of %s broke off: %s", self._shown, error)
            except Exception:  # whatever it is, a process that hears nothing would only poll
                log.exception("the wake-ups of %s broke off in a way they should not", self._shown)
            finally:
                await connection.disconnect(nowait=True)
            connection = await self._subscribe_again()
            self.ring(Topic)

    async def _hear_until_lost(self, connection: RedisConnection) -> None:
        asked = False
        while True:
            # The library answers None when the time is up.
            message = await connection.read_response(
                timeout=QUIET_SECONDS, disconnect_on_error=False
            )
            if message is None:
                if asked:
                    raise TimeoutError("no answer to a PING")
                async with asyncio.timeout(QUIET_SECONDS):
                    await connection.send_command("PING")
            asked = message is None
            if message is not None and message[0] == "message":
                self.ring([self._channels[message[1]]])

    async def _subscribe_again(self) -> RedisConnection:
        pause = RECONNECT_FIRST
        while True:
            try:
                return await self._subscribe()
            except (exceptions.RedisError, OSError, TimeoutError) as error:
                log.debug("no wake-ups of %s yet: %s", self._shown, error)
            await asyncio.sleep(pause * _random.uniform(0.8, 1.2))
            pause = min(pause * 2, RECONNECT_CAP)
