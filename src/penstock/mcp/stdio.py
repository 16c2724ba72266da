"""MCP on standard input and output: one message per line.

The SDK has a transport for this too, but it cannot be stopped while it waits for a line, and at the
end of the input it drops requests in progress. Here both end the same way: reading stops, waits
end, and pending requests are answered.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import threading
from collections.abc import Iterator

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from penstock.errors import ConfigError
from penstock.mcp.server import PenstockMCP
from penstock.mcp.waiting import Stopping

log = logging.getLogger("penstock.mcp")

MAX_BYTES = 4_000_000
"""Maximum size of one message."""
ANSWER_SECONDS = 5.0
"""Time for pending requests to be answered after the input ends."""
READ_BYTES = 65_536
AHEAD = 100
"""Lines to read ahead."""


class Pipes:
    """Standard input and output, reserved for the protocol: everything else that this process
    prints goes to stderr, and neither it nor its children read from the input."""

    def __init__(self) -> None:
        """Raises ConfigError if they are closed."""
        try:
            self.incoming, self.outgoing = (
                fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, 3) for stream in (0, 1)
            )
        except OSError:
            raise ConfigError("MCP needs standard input and output, and one is closed") from None
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)


class Stdio:
    """Serves one client, until its input ends or the process is told to stop."""

    def __init__(self, server: PenstockMCP, stopping: Stopping, pipes: Pipes) -> None:
        self._server = server
        self._stopping = stopping
        self._pipes = pipes
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)
        self._unanswered: set[RequestId] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def serve(self) -> None:
        asking, asked = anyio.create_memory_object_stream[SessionMessage | Exception]()
        answering, answers = anyio.create_memory_object_stream[SessionMessage]()
        # A daemon: it cannot be woken from its read, and must not keep the process alive.
        reading = threading.Thread(
            target=self._read, args=[asyncio.get_running_loop()], name="penstock-stdin", daemon=True
        )
        reading.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask(asking, answering.clone()))
            tasks.create_task(self._answer(answers))
            await self._server.serve_streams(asked, answering)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            for line in _lines(self._pipes.incoming):
                self._room.acquire()
                loop.call_soon_threadsafe(self._lines.put_nowait, line)
            loop.call_soon_threadsafe(self._lines.put_nowait, None)
        except RuntimeError:  # the loop is closed: the process is ending
            return

    async def _ask(
        self,
        asking: MemoryObjectSendStream[SessionMessage | Exception],
        answering: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        """Pass on incoming messages. At the end of the input, or on a stop, wait for the last
        replies."""
        async with asking, answering:
            while (line := await self._stopping.unless(self._lines.get())) is not None:
                self._room.release()
                message = _message(line)
                if isinstance(message, JSONRPCError):  # to be told, not asked
                    await answering.send(SessionMessage(message))
                elif message is not None:
                    self._note(message)
                    await asking.send(SessionMessage(message))
            self._stopping.begin()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._idle.wait()
            except TimeoutError:
                log.warning("%d calls were not answered in time", len(self._unanswered))

    async def _answer(self, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        gone = False
        async with answers:
            async for answer in answers:
                message = answer.message
                line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                try:
                    if not gone:
                        await asyncio.to_thread(_write, self._pipes.outgoing, line)
                except OSError as error:
                    log.warning("the client does not read any more: %s", error.strerror)
                    gone = True
                    self._stopping.begin()
                self._note(message)

    def _note(self, message: JSONRPCMessage) -> None:
        """Track which requests are still unanswered."""
        match message:
            case JSONRPCRequest():
                self._unanswered.add(message.id)
            case JSONRPCResponse(id=answered) | JSONRPCError(id=int() | str() as answered):
                self._unanswered.discard(answered)
            case JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": int() | str() as cancelled}
            ):
                self._unanswered.discard(cancelled)
        if self._unanswered:
            self._idle.clear()
        else:
            self._idle.set()


def _lines(stream: int) -> Iterator[bytes]:
    """Read lines, keeping only the beginning of one that is too long."""
    rest = b""
    while part := os.read(stream, READ_BYTES):
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
        rest = rest[: MAX_BYTES + 1]
    if rest:
        yield rest


def _message(line: bytes) -> JSONRPCMessage | None:
    """Parse a line; returns the problem if it is not a message, None if it is empty."""
    if not line.strip():
        return None
    if len(line) > MAX_BYTES:
        return _wrong(INVALID_REQUEST, f"over {MAX_BYTES:,} bytes in one message")
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            return _wrong(PARSE_ERROR, "this is not JSON")
        return _wrong(INVALID_REQUEST, "this is no JSON-RPC message")


def _wrong(code: int, what: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=what))


def _write(stream: int, line: bytes) -> None:
    while line:
        line = line[os.write(stream, line) :]
