"""Reads request bodies, with limits on size (whatever Content-Length says) and time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel
from pydantic import ValidationError as Invalid

from penstock.errors import ValidationError
from penstock.model.server import ServerConfig
from penstock.server.problems import Problem
from penstock.text import json_text

Model = TypeVar("Model", bound=BaseModel)

AT_ONCE = 16 * 1024
"""Bytes of a body that the event loop parses itself, in a millisecond; longer ones in a thread."""
MAX_FIELDS = 100
"""More than any body has."""
SLOWEST = 1000
"""Minimum bytes per second of a body once `body_seconds` have passed."""


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def stream(request: Request, most: int) -> AsyncIterator[bytes]:
    """Stream the body. Raises 413 past `most` bytes; 408 if it is too slow."""
    config: ServerConfig = request.app.state.config
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    size, source, begun = 0, request.stream(), time.monotonic()
    while True:
        spent = time.monotonic() - begun
        try:
            async with asyncio.timeout(min(config.body_seconds, _patience(config, size) - spent)):
                chunk = await anext(source, None)
        except TimeoutError:
            raise Problem(408, "too-slow", f"{size:,} bytes came in {spent:.0f} s") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        yield chunk


def _patience(config: ServerConfig, size: int) -> float:
    return config.body_seconds + size / SLOWEST


def _too_large(most: int) -> Problem:
    return Problem(413, "too-large", f"over {most:,} bytes in one request")


async def whole(request: Request, most: int | None = None) -> bytes:
    """Read a whole body, of `json_bytes` unless it may have fewer."""
    config: ServerConfig = request.app.state.config
    return b"".join([chunk async for chunk in stream(request, most or config.json_bytes)])


async def json_body(request: Request, model: type[Model]) -> tuple[Model, bytes]:
    """Read the body as `model`, and as sent; raises 415 if it is not declared as JSON."""
    require(request, "application/json")
    body = await whole(request)
    return await parse(body, model), body


async def optional_body(request: Request, model: type[Model]) -> tuple[Model, bytes]:
    """The same for a body that may be left out; all its fields have defaults."""
    body = await whole(request)
    if not body:
        return model(), body
    require(request, "application/json")
    return await parse(body, model), body


async def parse(body: bytes, model: type[Model]) -> Model:
    """Parse the body as `model`; raises 422 that says what is wrong."""
    if len(body) <= AT_ONCE:
        return _parse(body, model)
    return await asyncio.to_thread(_parse, body, model)


def _parse(body: bytes, model: type[Model]) -> Model:
    given = value_of(body, "the body")
    if isinstance(given, dict) and len(given) > MAX_FIELDS:  # each would be an error of its own
        there = ", ".join(model.model_fields)
        raise Problem(422, "invalid", f"the body has {len(given):,} fields; there are: {there}")
    try:
        return model.model_validate(given)
    except Invalid as error:
        errors = [
            {"where": ".".join(map(str, ("body", *one["loc"]))), "what": _what(one, model)}
            for one in error.errors(include_url=False, include_input=False)[:20]
        ]
        detail = "; ".join(f"{one['where']}: {one['what']}" for one in errors[:3])
        raise Problem(422, "invalid", detail, errors=errors) from None


def _what(error: Mapping[str, Any], model: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return f"there is no such field; there are: {', '.join(model.model_fields)}"
    return str(error["msg"])


def value_of(text: bytes | str, what: str) -> Any:
    """See `json_text.value_of`; raises 422 that says what is wrong."""
    try:
        return json_text.value_of(text, what)
    except ValidationError as error:
        raise Problem(422, "invalid", str(error)) from None


def require(request: Request, *types: str) -> str:
    """Return the body's media type, which must be one of these."""
    given = media_type(request)
    if given not in types:
        raise Problem(
            415, "unsupported-media-type", f"send {' or '.join(types)}, not {given or 'nothing'}"
        )
    return given
