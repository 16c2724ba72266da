"""Wake-ups between processes by LISTEN and NOTIFY, one channel per topic.

The connection for it is made when somebody first listens, and for ever made anew; each time all
who listen are woken, because anything may have happened meanwhile. Without LISTEN (`poll_only`,
for poolers that share sessions) everybody is woken now and then instead: often while this
process is busy with the queue, more slowly while it is idle.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable

from penstock.adapters.listener import Listener, Listeners
from penstock.adapters.postgres.database import Connection, Database
from penstock.adapters.postgres.errors import TROUBLE
from penstock.aio import end_tasks
from penstock.errors import QueueError
from penstock.ports.queue import Topic

log = logging.getLogger("penstock.postgres")

PING_SECONDS = 5.0
"""How often a silent connection is asked whether it is still one."""
PING_TIMEOUT = 3.0
RECONNECT_FIRST, RECONNECT_LAST = 0.1, 2.0
POLL_FIRST, POLL_LAST = 0.1, 1.0


class Wakeups(Listeners):
    """Hears wake-ups. Belongs to the event loop it is first listened in."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._wanted: set[Topic] = set()
        self._heard: set[Topic] = set()
        self._stir = asyncio.Event()
        self._busy = False
        self._task: asyncio.Task[None] | None = None

    def listen(self, topic: Topic) -> Listener:
        if topic not in self._wanted:
            self._wanted.add(topic)
            self._stir.set()
        if self._task is None:
            run = self._poll if self._database.poll_only else self._hear
            self._task = asyncio.create_task(run(), name="penstock-wakeups")
        return super().listen(topic)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await end_tasks([task])

    def changed(self, topics: Iterable[Topic]) -> None:
        """This process has changed something; for when there is no channel to hear it from."""
        if self._database.poll_only:
            self._busy = True
            self.ring(topics)

    async def _hear(self) -> None:
        pause = RECONNECT_FIRST
        while True:
            connection: Connection | None = None
            try:
                connection = await self._database.connect("listen")
                self._heard.clear()
                connection.add_termination_listener(lambda _: self._stir.set())
                while not connection.is_closed():
                    await self._keep(connection)
                    pause = RECONNECT_FIRST
                log.debug("the connection for wake-ups was lost")
            except (QueueError, *TROUBLE) as error:
                log.debug("no wake-ups for now: %s", error)
            except Exception:  # whatever it is, a process that hears nothing would only poll
                log.exception("the wake-ups broke off in a way they should not")
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 (not a secret)
            pause = min(pause * 2, RECONNECT_LAST)

    async def _keep(self, connection: Connection) -> None:
        """Listen to what is wanted, until that changes or it is time to ask for a sign of life."""
        for topic in self._wanted - self._heard:
            channel = f"{self._database.address.schema}.{topic.value}"
            await connection.add_listener(channel, lambda *_, topic=topic: self.ring([topic]))
            self._heard.add(topic)
            self.ring([topic])
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self._stir.wait()
            self._stir.clear()
        except TimeoutError:
            await connection.execute("SELECT 1", timeout=PING_TIMEOUT)

    async def _poll(self) -> None:
        pause = POLL_FIRST
        while True:
            await asyncio.sleep(pause)
            pause = POLL_FIRST if self._busy else min(pause * 1.5, POLL_LAST)
            self._busy = False
            self.ring(Topic)
