"""Work for a caller that hangs up is cancelled; see also `sqlite/test_deadlines.py`."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from penstock.server.draining import while_connected


class Line:
    """A connection on which nothing more comes until the caller hangs up."""

    def __init__(self) -> None:
        self.cut = asyncio.Event()

    async def receive(self) -> Message:
        await self.cut.wait()
        return {"type": "http.disconnect"}


async def test_work_is_cancelled_when_its_caller_hangs_up() -> None:
    line, cancelled = Line(), asyncio.Event()

    async def work() -> None:
        line.cut.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(ClientDisconnect):
        await while_connected(line.receive, work())
    assert cancelled.is_set()


async def test_what_the_work_gives_or_raises_is_passed_on() -> None:
    async def work(fails: bool) -> int:
        if fails:
            raise ValueError("no")
        return 7

    assert await while_connected(Line().receive, work(False)) == 7
    with pytest.raises(ValueError, match="no"):
        await while_connected(Line().receive, work(True))
