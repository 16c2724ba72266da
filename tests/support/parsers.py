"""Parsers that are forks of a process which has loaded what they need (forks.py).

Starting Python and loading its readers is most of what a short document costs. What the pool sees
is the same: a process that leads a session, with a pipe to it and one from it. Only that it ends
with its parent is left to the pipe; tests of starts and deaths use parsers of the usual kind.
"""

from __future__ import annotations

import asyncio
import os
import socket
import warnings
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

MODULE = "penstock.documents.parse.child"
new_process = asyncio.create_subprocess_exec

Ask = Callable[[list[Any], Sequence[int]], socket.socket]
"""Asks for a fork: `forks.ask`."""


class ForkedParser:
    """What the pool wants of an `asyncio.subprocess.Process`."""

    def __init__(
        self, pid: int, news: socket.socket, to: asyncio.StreamWriter, reading: _Reading
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin, (self.stdout, self._reading) = to, reading
        self._news = news
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._loop.add_reader(news, self._hear)

    def _hear(self) -> None:
        self._loop.remove_reader(self._news)
        with self._news:
            told = self._news.recv(100)
        self.returncode = os.waitstatus_to_exitcode(int(told)) if told else -1
        self._ended.set_result(None)

    async def wait(self) -> int:
        await asyncio.shield(self._ended)
        self.stdin.close()
        self._reading.close()
        assert self.returncode is not None
        return self.returncode


_Reading = tuple[asyncio.StreamReader, asyncio.ReadTransport]


def forking(ask: Ask) -> Callable[..., Coroutine[Any, Any, Process | ForkedParser]]:
    """`asyncio.create_subprocess_exec` that makes each parser a fork."""

    async def create_subprocess_exec(*command: Any, **options: Any) -> Process | ForkedParser:
        if command[-1] != MODULE:
            return await new_process(*command, **options)
        return await _start(ask, options["env"])

    return create_subprocess_exec


async def _start(ask: Ask, environment: Mapping[str, str]) -> ForkedParser:
    loop = asyncio.get_running_loop()
    requests, to = os.pipe()
    answers_from, answers = os.pipe()
    nowhere = os.open(os.devnull, os.O_RDWR)
    with ExitStack() as given_up:  # the fork ends by itself when its pipes are closed
        asked = [MODULE, [], os.getcwd(), dict(environment)]
        news = given_up.enter_context(ask(asked, (requests, answers, nowhere)))
        told_by = given_up.enter_context(os.fdopen(answers_from, "rb", 0))
        told_to = given_up.enter_context(os.fdopen(to, "wb", 0))
        for file in (requests, answers, nowhere):
            os.close(file)
        news.setblocking(False)
        told = await loop.sock_recv(news, 100)
        assert told, "the server of forks is gone"
        reader = asyncio.StreamReader()
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), told_by
        )
        given_up.callback(reading.close)
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), told_to
        )
        given_up.pop_all()
    writer = asyncio.StreamWriter(writing, protocol, None, loop)
    return ForkedParser(int(told), news, writer, (reader, reading))


def become() -> None:
    """In a new fork: as the pool starts a process of its own."""
    os.setsid()
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
