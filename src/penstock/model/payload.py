"""Payloads and results as JSON text, within explicit limits."""

from __future__ import annotations

import json
from typing import Any

from penstock.model.errors import PayloadTooLarge, PermanentError, ResultTooLarge, ValidationError
from penstock.model.job import PAYLOAD_LIMIT, RESULT_LIMIT
from penstock.model.text import storable

UNREADABLE = "unreadable"
UNREADABLE_LIMIT = 1000

# Sorted keys make the text canonical: equal payloads are equal texts, which is how an
# idempotency key's payload is compared.
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def encode_payload(payload: Any) -> str:
    """The canonical JSON text of a payload, or ValidationError saying what is wrong with it."""
    if payload is None:
        return "{}"
    if not isinstance(payload, dict):
        raise ValidationError(f"a payload is a dict of arguments, not {type(payload).__name__}")
    if not all(isinstance(name, str) for name in payload):
        raise ValidationError("a payload's keys are argument names, so they must be strings")
    text, size = _encode_or(payload, ValidationError, "payload")
    if size > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"payload is {size:,} bytes, the limit is {PAYLOAD_LIMIT:,}; "
            "store the data elsewhere and enqueue a reference"
        )
    return text


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
    text, size = _encode_or(result, PermanentError, "result")
    if size > RESULT_LIMIT:
        raise ResultTooLarge(
            f"result is {size:,} bytes, the limit is {RESULT_LIMIT:,}; "
            "store it elsewhere and return a reference"
        )
    return text


def _encode_or(value: Any, error: type[PermanentError], what: str) -> tuple[str, int]:
    try:
        text = _encode(value)
        # Encoding also refuses a lone surrogate: a str that no database takes.
        return text, len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError, RecursionError) as problem:
        raise error(f"{what} is not JSON: {problem}") from None
