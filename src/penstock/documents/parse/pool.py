"""Parses, masks and chunks documents from an event loop, in child processes.

    async with ParserPool(size=2) as pool:
        parsed = await pool.parse(Path("report.pdf"))

At most `size` documents are worked on at a time; more wait, and tenants take turns (turns.py). Time
is limited from a document's turn on, not while it waits. A child does one document after another
and is replaced when it has done enough or has grown. It is killed, with what it has started, when a
document takes too long or too much memory, when the caller is cancelled, and when the pool is
closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.documents.parse.frames import LENGTHS, packed
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.packing import Frame
from penstock.documents.parse.requests import Parsing
from penstock.documents.parse.tenant_turns import Turns, Waiting
from penstock.engine.run import undisturbed
from penstock.errors import ConfigError, ParserError

_COMMAND = ("-P", "-m", "penstock.documents.parse.child")
"""Command of a child. -P: do not import modules from the current directory."""
_START_SECONDS = 60.0
_AHEAD = 7
"""Documents to hold per child: enough that none idles while the next ones are claimed, and few
enough that other processes get some."""
_WATCH_SECONDS = 0.05
_ENVIRONMENT = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TESSDATA_PREFIX"),
)
"""Variables that a child inherits: not passwords and keys, in case a document takes it over."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ChildGone(Exception):
    """The child ended before it replied."""


class ParserPool(Parsing):
    def __init__(self, size: int = 2, limits: ParseLimits | None = None) -> None:
        if size < 1:
            raise ConfigError("a parser pool needs at least one child")
        super().__init__(limits or ParseLimits())
        self.size = size
        self._turns = Turns(size)
        self._idle: list[_Child] = []
        self._children: set[_Child] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def open(self) -> None:
        """Allow use again after `close`."""
        self._closed = False

    async def close(self) -> None:
        """Kill every child, including busy ones, and wait until they are gone."""
        self._closed = True
        self._idle.clear()
        await asyncio.gather(*(self._end(child) for child in list(self._children)))

    @property
    def worth_having(self) -> int:
        """Number of requests to hold at a time: those in progress, and some that wait."""
        return self.size * (1 + _AHEAD)

    @property
    def longest_seconds(self) -> float:
        """Maximum time from its turn until a request is answered or fails."""
        return _START_SECONDS + self._limits.seconds

    @property
    def pids(self) -> list[int]:
        """Ids of the current processes."""
        return [child.pid for child in self._children]

    def asked_by(self, tenant: str, waiting: Waiting = nullcontext) -> Parsing:
        """Return the pool for one caller: its requests count for this tenant, and each wait for a
        turn is inside `waiting()`."""
        return _Asker(self, tenant, waiting)

    async def ask(
        self,
        question: dict[str, Any],
        body: bytes,
        tenant: str = "",
        waiting: Waiting = nullcontext,
    ) -> Frame:
        """Send a request to a child. Its time limit starts with its turn."""
        request = packed({"limits": asdict(self._limits), **question}, body)
        async with self._turns.turn(tenant, waiting):
            whole = asyncio.timeout(self.longest_seconds)
            try:
                async with whole:
                    return await self._ask_twice(request)
            except TimeoutError:
                if whole.expired():
                    raise self._slow() from None
                raise  # a child took too long to start: not the document's fault

    async def _ask_twice(self, request: list[bytes]) -> Frame:
        try:
            return await self._ask_once(request)
        except ChildGone:
            # It may have been killed for what it did before, or from outside: once more.
            pass
        try:
            return await self._ask_once(request)
        except ChildGone as gone:
            raise ParserError("the parser crashed on it, twice", "crashed") from gone

    def _slow(self) -> ParserError:
        return ParserError(f"not parsed within {self._limits.seconds:g} s", "slow")

    async def _ask_once(self, request: list[bytes]) -> Frame:
        child = self._idle.pop() if self._idle else await self._start()
        try:
            async with asyncio.timeout(self._limits.seconds):
                header, body = await child.ask(request, self._limits)
        except TimeoutError:
            await self._end(child)
            raise self._slow() from None
        except BaseException:
            await self._end(child)
            raise
        if self._closed or child.is_spent(self._limits):
            await self._end(child)
        else:
            self._idle.append(child)
        match header:
            case {"config": message}:
                raise ConfigError(message)
            case {"error": message, "reason": reason}:
                raise ParserError(message, reason)
            case _:
                return header, body

    async def _start(self) -> _Child:
        self._refuse_if_closed()
        making = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                sys.executable,
                *_COMMAND,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                start_new_session=True,  # Ctrl-C is for the parent
            )
        )
        # A process that is made, or ends, without being waited for would be forgotten.
        cancelled = await undisturbed(making)
        child = _Child(making.result())
        self._children.add(child)
        try:
            if cancelled is not None:
                raise cancelled
            self._refuse_if_closed()  # it may have been meanwhile
            async with asyncio.timeout(_START_SECONDS):
                await child.receive()
        except ChildGone as gone:
            await self._end(child)
            # Not the document's fault: it may be tried again.
            raise RuntimeError(
                f"`python {' '.join(_COMMAND)}` ended as it started; run it to see why"
            ) from gone
        except BaseException:
            await self._end(child)
            raise
        return child

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise RuntimeError("the parser pool is closed")

    async def _end(self, child: _Child) -> None:
        try:
            await child.kill()
        finally:
            self._children.discard(child)


class _Asker(Parsing):
    def __init__(self, pool: ParserPool, tenant: str, waiting: Waiting) -> None:
        super().__init__(pool._limits)
        self._pool = pool
        self._tenant = tenant
        self._waiting = waiting

    async def ask(self, question: dict[str, Any], body: bytes) -> Frame:
        return await self._pool.ask(question, body, self._tenant, self._waiting)


class _Child:
    """One process, and the pipe to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._to, self._from = process.stdin, process.stdout
        self._requests = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, request: list[bytes], limits: ParseLimits) -> Frame:
        """Send a request to the child, watching its memory."""
        self._requests += 1
        answer = asyncio.ensure_future(self._exchange(request))
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=_WATCH_SECONDS)
                if not answer.done() and self._megabytes() > limits.megabytes:
                    raise ParserError(f"needs more than {limits.megabytes} MB", "memory")
            return answer.result()
        finally:
            answer.cancel()
            await asyncio.wait({answer})

    async def _exchange(self, request: list[bytes]) -> Frame:
        try:
            self._to.writelines(request)
            await self._to.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ChildGone from error
        return await self.receive()

    async def receive(self) -> Frame:
        try:
            header, body = LENGTHS.unpack(await self._from.readexactly(LENGTHS.size))
            answer = json.loads(await self._from.readexactly(header))
            return answer, await self._from.readexactly(body)
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            raise ChildGone from error

    def is_spent(self, limits: ParseLimits) -> bool:
        return self._requests >= limits.requests or self._megabytes() > limits.megabytes / 2

    def _megabytes(self) -> float:
        """Memory in use; 0 if the system does not report it, and only the child's own limit
        applies."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except OSError:
            return 0.0
        return int(pages) * _PAGE_BYTES / 1_000_000

    async def kill(self) -> None:
        if self._process.returncode is None:
            # It leads a session of its own: what it has started is in its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self._to.close()
        cancelled = await undisturbed(asyncio.ensure_future(self._process.wait()))
        if cancelled is not None:
            raise cancelled
