"""The stored form of an error that ended a run: its message, where it was raised, and its causes
and members."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.engine.handlers import Handler
from penstock.errors import Answered, PenstockError, describe
from penstock.telemetry.logs import told
from penstock.text.normalize import storable

TRACEBACK_LIMIT = 12_000
"""Characters of a stored traceback; one that is longer is cut in the middle."""
LINE_LIMIT = 1000
"""Characters of each message in a traceback."""
OTHERS_KEPT = 100
"""Causes and members of groups that are kept with an error."""
OTHERS_TEXT = 8000
"""Characters of what they say, together; when that is used up each has OTHER_LEAST."""
OTHER_MOST, OTHER_LEAST = 500, 80
DEEPEST = 10

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
# The longest first: site-packages lies in the folder of the standard library.
LIBRARIES = sorted({sysconfig.get_path(name) + os.sep for name in _PATHS}, key=len, reverse=True)


def described(error: BaseException, handler: Handler, *, retryable: bool) -> dict[str, Any]:
    """The stored form of an error, with its `place` (file and line in the handler's code), its
    `cause` or `context`, the `members` of a group, and the `response` of an HTTP server.

    Of what ends our own jobs others than the error itself are kept by type and place only: they
    may quote a document.
    """
    found = describe(error, retryable=retryable)
    return _Others(handler).add(found, error)


def formatted(error: BaseException, handler: Handler) -> str | None:
    """The traceback, with causes and members of groups. Our own frames, and those of libraries
    that we call, are folded; none of the handler's are, as long as TRACEBACK_LIMIT allows. None
    for errors that the engine itself has made."""
    if error.__traceback__ is None:
        return None
    if handler.built_in:
        return _cut(storable(told(error)))
    frames = _Frames(handler)
    text = _format(error, frames, frames.fold)
    if len(text) > TRACEBACK_LIMIT:
        text = _format(error, frames, frames.fold_libraries)
    return _cut(text)


class _Frames:
    """Classifies frames by whose code they are in."""

    def __init__(self, handler: Handler) -> None:
        code = getattr(handler.function, "__code__", None)
        self._home = _package(code.co_filename) if code is not None else None
        """The package of the handler, where it is installed as a library."""
        self._handler = None if code is None else (code.co_filename, code.co_firstlineno)

    def is_theirs(self, file: str) -> bool:
        if file.startswith((OURS, "<frozen ")):
            return False
        package = _package(file)
        return package is None or package == self._home

    def behind(self, error: BaseException) -> tuple[str, BaseException] | None:
        """What the error came from, and whether as its cause or its context. Not what is behind an
        error of ours, raised by us: it says itself what it came from, and no more of that than it
        may, such as of a payload. But what the handler's code has raised before is."""
        name, other = "cause", error.__cause__
        if other is None and not error.__suppress_context__:
            name, other = "context", error.__context__
        if other is None:
            return None
        files = _files(error)
        ours = isinstance(error, PenstockError) and files and files[-1][0].startswith(OURS)
        if ours and not any(self.is_theirs(file) for file, _ in _files(other)):
            return None
        return name, other

    def place(self, error: BaseException) -> str | None:
        """The innermost line of the handler's code. Where it has no part in it: the handler
        itself for what we have raised, such as of its result, else the line of a library."""
        lines = _files(error)
        if not lines:
            return None
        theirs = [one for one in lines if self.is_theirs(one[0])]
        if not theirs and self._handler is not None and lines[-1][0].startswith(OURS):
            theirs = [self._handler]
        file, line = (theirs or lines)[-1]
        here = os.getcwd() + os.sep
        return storable(f"{file.removeprefix(here)}:{line}")

    def fold(self, frames: Iterable[traceback.FrameSummary]) -> Iterator[traceback.FrameSummary]:
        """Fold our frames, and behind them those of libraries."""
        return self._fold(frames, lambda file, ours: ours or file.startswith(OURS))

    def fold_libraries(
        self, frames: Iterable[traceback.FrameSummary]
    ) -> Iterator[traceback.FrameSummary]:
        return self._fold(frames, lambda file, ours: True)

    def _fold(
        self, frames: Iterable[traceback.FrameSummary], folds: Callable[[str, bool], bool]
    ) -> Iterator[traceback.FrameSummary]:
        folded, first, ours = 0, True, False
        for frame in frames:
            theirs = self.is_theirs(frame.filename)
            ours = not theirs and folds(frame.filename, ours)
            if ours:
                folded += 1
                continue
            if folded and not first:  # a run always begins in our code
                yield _fold_mark(folded)
            folded, first = 0, False
            yield frame
        if folded:
            yield _fold_mark(folded)


class _Stack(traceback.StackSummary):
    """Frames, and marks where some are folded."""

    def format_frame_summary(self, frame_summary: traceback.FrameSummary, **options: Any) -> str:
        if not frame_summary.filename:
            return f"  {frame_summary.name}\n"
        return super().format_frame_summary(frame_summary, **options)


def _fold_mark(count: int) -> traceback.FrameSummary:
    frames = "1 frame" if count == 1 else f"{count} frames"
    return traceback.FrameSummary("", count, f"... {frames} inside penstock or a library", line="")


class _Others:
    """The errors behind an error, as many as are kept."""

    def __init__(self, handler: Handler) -> None:
        self._frames = _Frames(handler)
        self._quotes = not handler.built_in
        self._seen: set[int] = set()
        self._text = OTHERS_TEXT

    def add(self, found: dict[str, Any], error: BaseException, depth: int = 0) -> dict[str, Any]:
        """`found` with what is behind `error`."""
        self._seen.add(id(error))
        if (place := self._frames.place(error)) is not None:
            found["place"] = place
        if self._quotes and isinstance(error, Answered) and error.response is not None:
            found["response"] = {
                "url": error.url,
                "status": error.response.status_code,
                "body": error.body,
            }
        if (behind := self._frames.behind(error)) is not None:
            name, other = behind
            if (one := self._describe(other, depth + 1)) is not None:
                found[name] = one
        if isinstance(error, BaseExceptionGroup):
            members = [self._describe(one, depth + 1) for one in error.exceptions]
            found["members"] = [one for one in members if one is not None]
            if None in members:
                found["left_out"] = members.count(None)
        return found

    def _describe(self, error: BaseException, depth: int) -> dict[str, Any] | None:
        if len(self._seen) > OTHERS_KEPT or depth > DEEPEST or id(error) in self._seen:
            return None
        found = describe(error, retryable=True)
        del found["retryable"]  # which is said of the whole
        if self._quotes:
            most = max(OTHER_LEAST, min(OTHER_MOST, self._text))
            found["message"] = found["message"][:most]
            self._text -= len(found["message"])
        else:
            found["message"] = ""
        return self.add(found, error, depth)


def _files(error: BaseException) -> list[tuple[str, int]]:
    """File and line of each frame it came through, the innermost last."""
    walked = traceback.walk_tb(error.__traceback__)
    return [(frame.f_code.co_filename, line) for frame, line in walked]


def _package(file: str) -> str | None:
    """The package or module of a library that the file belongs to; None: it is of none."""
    for folder in LIBRARIES:
        if file.startswith(folder):
            return folder + file.removeprefix(folder).partition(os.sep)[0]
    return None


Fold = Callable[[Iterable[traceback.FrameSummary]], Iterator[traceback.FrameSummary]]


def _format(error: BaseException, frames: _Frames, fold: Fold) -> str:
    whole = traceback.TracebackException.from_exception(
        error, max_group_width=OTHERS_KEPT, max_group_depth=DEEPEST, compact=True
    )
    waiting = [(whole, error)]
    while waiting:
        one, its = waiting.pop()
        one.stack = _Stack(fold(one.stack))
        if (behind := frames.behind(its)) is None:
            one.__cause__ = one.__context__ = None
        elif (other := one.__cause__ or one.__context__) is not None:
            waiting.append((other, behind[1]))
        if isinstance(its, BaseExceptionGroup) and one.exceptions:
            waiting += zip(one.exceptions, its.exceptions, strict=True)
    return storable("".join(_short(part) for part in whole.format()))


def _short(part: str) -> str:
    if len(part) <= LINE_LIMIT:
        return part
    return f"{part[:LINE_LIMIT]}... ({len(part):,} characters)\n"


def _cut(text: str) -> str:
    if len(text) <= TRACEBACK_LIMIT:
        return text
    half = TRACEBACK_LIMIT // 2
    return f"{text[:half]}\n... {len(text) - 2 * half:,} characters left out ...\n{text[-half:]}"
