"""Parsing, masking and cutting from an event loop, in child processes.

    async with ParserPool(size=2) as pool:
        parsed = await pool.parse(Path("report.pdf"))

At most `size` documents are worked on at a time; more wait. A child does one document after another
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
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from penstock.ingest.chunk import ChunkSettings
from penstock.ingest.cut import Uncut
from penstock.ingest.parse.frames import LENGTHS, packed
from penstock.ingest.parse.limits import ParseLimits
from penstock.ingest.parse.wire import (
    Frame,
    pack_uncut,
    unpack_chunks,
    unpack_parsed,
    unpack_staged,
)
from penstock.ingest.parsed import Parsed
from penstock.model.document import NewChunk, Staged
from penstock.model.errors import ConfigError, ParserError

_COMMAND = ("-P", "-m", "penstock.ingest.parse.child")
"""What Python is to run; -P: not with modules that happen to lie in the current folder."""
_START_SECONDS = 60.0
_WATCH_SECONDS = 0.05
_ENVIRONMENT = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TESSDATA_PREFIX"),
)
"""What a child inherits: not the passwords and keys, should a document take it over."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Scans(NamedTuple):
    """A document that is not whole yet: some pages are pictures."""

    pages: int


class ChildGone(Exception):
    """The child ended before it answered."""


class ParserPool:
    def __init__(self, size: int = 2, limits: ParseLimits | None = None) -> None:
        if size < 1:
            raise ConfigError("a parser pool needs at least one child")
        self._limits = limits or ParseLimits()
        self._turns = asyncio.Semaphore(size)
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
        """Let it be used again after it was closed."""
        self._closed = False

    async def close(self) -> None:
        """Kills every child, also busy ones, and waits until they are gone."""
        self._closed = True
        self._idle.clear()
        await asyncio.gather(*(self._end(child) for child in list(self._children)))

    @property
    def pids(self) -> list[int]:
        """Processes that are there now."""
        return [child.pid for child in self._children]

    async def parse(
        self,
        source: bytes | Path,
        scanned: Mapping[int, str] | None = None,
        web: str | None = None,
    ) -> Parsed:
        """What is in a document, given as its bytes or the path of a file. `scanned` is what was
        read on pages that are pictures, by number. `web`: it comes from a web server, which has
        called its charset so.

        Raises ParserError with a reason, ConfigError if a library is missing.
        """
        return unpack_parsed(*await self._of(source, scanned=scanned, question={"web": web}))

    async def stage(
        self, source: bytes | Path, title: str, settings: ChunkSettings, web: str | None = None
    ) -> Staged | Scans:
        """A document parsed, masked by the patterns that everybody has, and cut, in one go: what is
        not masked stays in the child. `title` is used where the document has none. Raises what
        `parse` does."""
        question = {"stage": {"title": title, "settings": asdict(settings)}, "web": web}
        header, body = await self._of(source, question=question)
        if "scans" in header:
            return Scans(header["scans"])
        return unpack_staged(header, body)

    async def picture(self, source: bytes | Path, page: int) -> bytes:
        """What a page (from 1) looks like, as PNG. Raises what `parse` does."""
        _, png = await self._of(source, page)
        return png

    async def ocr(self, source: bytes | Path, page: int, languages: str) -> str:
        """What tesseract reads on a page (from 1). Raises what `parse` does; ConfigError also if
        tesseract or a language is missing."""
        _, text = await self._of(source, page, languages)
        return text.decode()

    async def cut(self, uncut: Uncut, settings: ChunkSettings) -> list[NewChunk]:
        """The chunks of a masked text. Raises what `parse` does."""
        answer = await self._ask(*pack_uncut(uncut, settings))
        return unpack_chunks(uncut.text, *answer)

    async def _of(
        self,
        source: bytes | Path,
        page: int | None = None,
        languages: str | None = None,
        scanned: Mapping[int, str] | None = None,
        question: Mapping[str, Any] | None = None,
    ) -> Frame:
        if isinstance(source, bytes) and len(source) > self._limits.input_bytes:
            raise ParserError(f"larger than {self._limits.input_bytes} bytes", "oversized")
        asked = {"scanned": dict(scanned or {}), "page": page, "languages": languages}
        return await self._ask(*_about(source, {**asked, **(question or {})}))

    async def _ask(self, question: dict[str, Any], body: bytes) -> Frame:
        request = packed({"limits": asdict(self._limits), **question}, body)
        async with self._turns:
            try:
                return await self._ask_once(request)
            except ChildGone:
                # It may have been killed for what it did before, or from outside: once more.
                pass
            try:
                return await self._ask_once(request)
            except ChildGone as gone:
                raise ParserError("the parser crashed on it, twice", "crashed") from gone

    async def _ask_once(self, request: list[bytes]) -> Frame:
        child = self._idle.pop() if self._idle else await self._start()
        try:
            async with asyncio.timeout(self._limits.seconds):
                header, body = await child.ask(request, self._limits)
        except TimeoutError:
            await self._end(child)
            raise ParserError(f"not parsed within {self._limits.seconds:g} s", "slow") from None
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
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *_COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            start_new_session=True,  # Ctrl-C is for the parent
        )
        child = _Child(process)
        self._children.add(child)
        try:
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
        """The child's answer; its memory is watched meanwhile."""
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
        """Memory in use; 0 where the system does not tell, and the child's own limit has to do."""
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
        await self._process.wait()


def _about(source: bytes | Path, question: dict[str, Any]) -> Frame:
    if isinstance(source, bytes):
        return {"path": None, **question}, source
    return {"path": str(source.absolute()), **question}, b""
