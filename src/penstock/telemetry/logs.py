"""Log formatting, for people or as JSON.

Of an exception only its type is logged, and where it was raised: what it says may quote a document,
a payload or a key.
"""

from __future__ import annotations

import json
import logging
import os
import re
import textwrap
import time
import traceback
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from penstock.telemetry import tracing

FIELDS = ("job", "kind", "attempt", "log", "tenant", "lane")
"""What an entry can say of a job: given as `extra`, or known where it is logged."""
JOB_LOGGER = "penstock.job"
"""What handlers log with `ctx.log`."""
SELDOM_SECONDS = 60.0
WORDS = re.compile(r"[\w .,!-]*", re.ASCII)

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class TextLines(logging.Formatter):
    """Time, level and message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (its name)
        record.message = said(record)
        if record.name == JOB_LOGGER:
            about = record.__dict__
            record.message = f"job {about.get('job')} ({about.get('kind')}): {record.message}"
        return super().formatMessage(record)

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 (its name)
        return told(ei[1])


class JsonFormatter(logging.Formatter):
    """A JSON object for each entry, on a line of its own. `context` tells of the job that is
    running where the entry is made."""

    def __init__(self, context: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        self._context = context

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, Any] = {
            "time": f"{at}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": said(record),
            "process": os.getpid(),
        }
        given = {name: getattr(record, name, None) for name in FIELDS}
        about = {**self._context(), **{k: v for k, v in given.items() if v is not None}}
        entry |= {name: about[name] for name in FIELDS if about.get(name) is not None}
        if (trace := tracing.current().traceparent) is not None:
            _, entry["trace_id"], entry["span_id"], _ = trace.split("-")
        if record.exc_info and record.exc_info[1] is not None:
            entry["error"] = type(record.exc_info[1]).__name__
            entry["traceback"] = told(record.exc_info[1])
        return json.dumps(entry, ensure_ascii=False, default=str)


def said(record: logging.LogRecord) -> str:
    """The message. Of what asyncio has to say only the first words: behind them it shows the task
    that failed, and with it its error or its arguments."""
    message = record.getMessage()
    if record.name != "asyncio":
        return message
    words = WORDS.match(message)
    return words[0].strip() if words else ""


def told(error: BaseException | None, seen: frozenset[int] = frozenset()) -> str:
    """An exception, what it came from and, of a group, its members: types and places."""
    lines: list[str] = []
    while error is not None and id(error) not in seen:
        seen |= {id(error)}
        lines += [*traceback.format_tb(error.__traceback__), f"{type(error).__name__}\n"]
        if isinstance(error, BaseExceptionGroup):
            for number, member in enumerate(error.exceptions, 1):
                within = textwrap.indent(told(member, seen), "  | ")
                lines.append(f"  + {number} of {len(error.exceptions)}\n{within}\n")
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)
    return "".join(lines).rstrip()


class RepeatFilter(logging.Filter):
    """Lets what these loggers say through once a minute: they repeat it for as long as something
    is away that nobody waits for."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names
        self._next: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(self._names):
            return True
        now = time.monotonic()
        if now < self._next.get(record.name, 0.0):
            return False
        self._next[record.name] = now + SELDOM_SECONDS
        return True
