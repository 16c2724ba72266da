"""Payloads and results as JSON text, within explicit limits.

Both ways are pydantic's JSON mode: what a handler can be given, such as a dataclass, a datetime or
a UUID, can also be enqueued and returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from penstock.errors import PayloadTooLarge, PermanentError, ResultTooLarge, ValidationError
from penstock.model.job import PAYLOAD_LIMIT, RESULT_LIMIT
from penstock.text.normalize import storable

UNREADABLE = "unreadable"
UNREADABLE_LIMIT = 1000

# Sorted keys make the text canonical: equal payloads are equal texts, which is how an
# idempotency key's payload is compared.
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def encode_payload(payload: Any) -> str:
    """The canonical JSON text of a payload, or ValidationError saying what is wrong with it."""
    return plain_payload(payload)[1]


def plain_payload(payload: Any) -> tuple[dict[str, Any], str]:
    """A payload in values that JSON has, and its canonical JSON text; or ValidationError."""
    if payload is None:
        return {}, "{}"
    if not isinstance(payload, dict):
        raise ValidationError(f"a payload is a dict of arguments, not {type(payload).__name__}")
    if not all(issubclass(kind, str) for kind in {*map(type, payload)}):
        raise ValidationError("a payload's keys are argument names, so they must be strings")
    return _within_limit(payload, "payload", "enqueue")


def read_payload(text: str) -> dict[str, Any]:
    """The payload of a row as it is shown. What is none was not written by us: the job fails when
    it is run, and until then it has to be seen beside the others."""
    payload = read_json(text)
    return payload if isinstance(payload, dict) else {UNREADABLE: storable(text[:UNREADABLE_LIMIT])}


def read_json(text: str) -> Any:
    """A result or an error of a row as it is shown."""
    try:
        return json.loads(text if text.isascii() else storable(text))
    except (ValueError, RecursionError):
        return {UNREADABLE: storable(text[:UNREADABLE_LIMIT])}


def encode_result(result: Any) -> str:
    """The JSON text of a handler's result; a permanent error when it is not JSON or too large."""
    if result is None:
        return "null"
    _, text, size = _encode_or(result, PermanentError, "result")
    if size > RESULT_LIMIT:
        raise ResultTooLarge(
            f"result is {size:,} bytes, the limit is {RESULT_LIMIT:,}; "
            "store it elsewhere and return a reference"
        )
    return text


def encode_step(value: Any, what: str) -> str:
    """The canonical JSON text of a step's arguments or result; a permanent error if it is none."""
    return _encode_or(value, ValidationError, what)[1]


def encode_signal(payload: Any) -> str:
    """The JSON text of what a signal tells; ValidationError if it is none, null, or too large."""
    text = _within_limit(payload, "payload of a signal", "send")[1]
    if text == "null":
        raise ValidationError(
            "payload of a signal cannot be None (null): that is what ctx.wait_for returns after "
            "its timeout; leave the payload out to send true"
        )
    return text


def encode_event(data: Any) -> str:
    """The JSON text of an emitted event; ValidationError if it is none, or too large."""
    return _within_limit(data, "event", "emit")[1]


def _within_limit(value: Any, what: str, verb: str) -> tuple[Any, str]:
    plain, text, size = _encode_or(value, ValidationError, what)
    if size > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"{what} is {size:,} bytes, the limit is {PAYLOAD_LIMIT:,}; "
            f"store the data elsewhere and {verb} a reference"
        )
    return plain, text


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _encode_or(value: Any, error: type[PermanentError], what: str) -> tuple[Any, str, int]:
    try:
        try:
            text = _encode(value)
        except TypeError:  # most values are plain, and need no second look
            value = _plain(value, "")
            text = _encode(value)
        # Encoding also refuses a lone surrogate: a str that no database takes.
        return value, text, byte_length(text)
    except (TypeError, ValueError, RecursionError) as problem:
        raise error(f"{what} is not JSON: {problem}") from None


def _plain(value: Any, where: str) -> Any:
    """The same in values that JSON has; TypeError names the place of what cannot be."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return _object(value.items(), where)
        case list() | tuple():
            return [_plain(one, f"{where}[{place}]") for place, one in enumerate(value)]
        case set() | frozenset():
            # In an order of their own: equal payloads are equal texts.
            return sorted((_plain(one, f"{where}[...]") for one in value), key=_encode)
    kind: Any = type(value)
    if is_dataclass(kind) and not hasattr(kind, "__pydantic_serializer__"):
        return _object(((one.name, getattr(value, one.name)) for one in fields(kind)), where)
    if (write := writer(kind)) is None:
        raise TypeError(
            f"{where or 'it'} is of type {kind.__name__}; plain values, dataclasses and pydantic "
            "models can be stored"
        )
    try:
        return write(value)
    except ValueError as problem:
        raise TypeError(f"{where or kind.__name__}: {problem}") from None


def _object(items: Iterable[tuple[Any, Any]], where: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, value in items:
        plain = _plain(key, f"a key of {where or 'it'}")
        if isinstance(plain, list | dict):
            raise TypeError(f"a key of {where or 'it'} is of type {type(key).__name__}")
        name = plain if isinstance(plain, str) else _encode(plain)
        if name in named:
            raise TypeError(f"two keys of {where or 'it'} are {name!r} in JSON")
        named[name] = _plain(value, f"{where}.{name}" if where else name)
    return named


NOT_DATA = (bytes, bytearray, memoryview, complex)
"""pydantic writes them, but not all of them, or not so that they can be read again."""


@lru_cache(maxsize=1000)
def writer(kind: type) -> Callable[[Any], Any] | None:
    """What turns values of a class into values that JSON has, if anything does."""
    # Imported here: pydantic takes 0.2 s to load, and plain values need none of it.
    import pydantic

    if kind is object or issubclass(kind, NOT_DATA):
        return None
    try:
        adapter = pydantic.TypeAdapter[Any](kind)
    except pydantic.errors.PydanticUserError:
        return None

    def write(value: Any) -> Any:
        return adapter.dump_python(value, mode="json", by_alias=True)

    return write
