"""Reads jobs from a file, one JSON object per line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from penstock.cli.errors import InputError
from penstock.cli.output import console, is_terminal
from penstock.errors import ValidationError
from penstock.model.payload import encode_payload

BATCH = 1000


class InputLine(NamedTuple):
    number: int
    payload: dict[str, Any]
    key: str | None


@contextmanager
def open_source(name: str) -> Iterator[IO[bytes]]:
    """Open the file `name`, or standard input for `-`."""
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: SIM115 (closed below; only opening may fail this way)
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None
    with file:
        yield file


def parse_payload(text: str | bytes) -> dict[str, Any]:
    """Parse a payload from JSON text; raises InputError that says what is wrong."""
    try:
        payload = json.loads(text)
        encode_payload(payload)
    except UnicodeDecodeError:
        raise InputError("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            raise InputError(str(error)) from None
        raise InputError(f"not JSON: {error}") from None
    if payload is None:
        raise InputError('a payload is a JSON object such as {"url": "..."}, not null')
    return payload  # type: ignore[no-any-return]  # encode_payload takes nothing but a dict


def batches(file: Iterable[bytes], *, keyed: bool) -> Iterator[list[InputLine]]:
    """Read the lines of `file` in batches. Before InputError names a bad line, all lines before it
    have been yielded; empty lines are skipped."""
    batch: list[InputLine] = []
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            batch.append(_line(number, text, keyed=keyed))
        except InputError as error:
            if batch:
                yield batch
            raise InputError(f"line {number}: {error}") from None
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _line(number: int, text: bytes, *, keyed: bool) -> InputLine:
    if not keyed:
        return InputLine(number, parse_payload(text), None)
    whole = parse_payload(text)
    if not whole.keys() <= {"key", "payload"} or not isinstance(whole.get("key"), str):
        raise InputError('with --keyed a line is {"key": "...", "payload": {...}}')
    payload = whole.get("payload", {})
    if not isinstance(payload, dict):
        raise InputError(f"payload is a JSON object, not {json.dumps(payload)[:40]}")
    return InputLine(number, payload, whole["key"])


@contextmanager
def meter(file: IO[bytes], *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr if that is a terminal; call the result with the number of jobs
    stored."""
    if quiet or not is_terminal(sys.stderr):
        yield lambda stored: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    size = file.seek(0, 2) if file.seekable() else None
    if size is not None:
        file.seek(0)
    columns = (TextColumn("{task.fields[stored]:,} jobs stored"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr)) as progress:
        bar = progress.add_task("", total=size, stored=0)

        def advance(stored: int) -> None:
            done = file.tell() if size is not None else 0
            progress.update(bar, completed=done, stored=stored)

        yield advance
