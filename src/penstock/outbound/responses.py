"""Responses: reads their bodies within limits, and raises what their status means."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from penstock import runtime
from penstock.errors import AuthenticationError, HttpError, RateLimited, Unavailable
from penstock.model.redact import HIDDEN, hidden
from penstock.text.retry_after import MAX_RETRY_AFTER, retry_after

if TYPE_CHECKING:
    import httpx2

BODY_LIMIT = 64 * 1024 * 1024
TOLD_BYTES = 4096
"""Bytes of an error response that are kept with the exception, as text."""
TOLD_SECONDS = 2.0
LONG_PART = re.compile(r"(?<=/)([^/]{4})[^/]{16,}")
PATH_LIMIT = 100
"""Maximum characters of a path in an error message; its `url` is complete."""
PARSED_BYTES = 65536
"""Maximum size of JSON in which secrets are hidden by name."""
RESET_HEADERS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
EPOCHS = 1e9
"""A larger number is a timestamp, not a number of seconds."""


async def body_parts(
    response: httpx2.Response, url: str, limit: int, silence: float | None = None
) -> AsyncGenerator[bytes, None]:
    """Iterate over the body up to `limit`, whatever its declared length."""
    body = response.aiter_bytes()
    size, patience = 0, None
    while True:
        try:
            async with asyncio.timeout(patience):
                part = await anext(body, None)
        except TimeoutError:
            raise TimeoutError(f"nothing for {patience:g} s") from None
        if part is None:
            return
        size, patience = size + len(part), silence
        if size > limit:
            raise HttpError(
                f"{without_password(url)}: body over {limit:,} bytes", response.status_code
            )
        yield part


async def read_whole(response: httpx2.Response, url: str, limit: int) -> httpx2.Response:
    """Read the whole body of a response."""
    body = bytearray()
    async for part in body_parts(response, url, limit):
        body += part
    return _with_body(response, body)


async def read_beginning(response: httpx2.Response, url: str) -> httpx2.Response:
    """Read the part of the body that is reported with an error. The status is what matters: a body
    that is late or breaks off is not waited for."""
    import httpx2

    body = bytearray()
    with suppress(TimeoutError, httpx2.TransportError):
        async with (
            asyncio.timeout(TOLD_SECONDS),
            aclosing(body_parts(response, url, BODY_LIMIT)) as parts,
        ):
            async for part in parts:
                body += part
                if len(body) >= TOLD_BYTES:
                    break
    return _with_body(response, body)


def _with_body(response: httpx2.Response, body: bytearray) -> httpx2.Response:
    headers = [  # the body is decoded now
        (name, value)
        for name, value in response.headers.multi_items()
        if name not in ("content-encoding", "content-length", "transfer-encoding")
    ]
    return type(response)(
        response.status_code, headers=headers, content=bytes(body), request=response.request
    )


def without_password(url: str) -> str:
    """Format a URL for an error: without its password."""
    scheme, slashes, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{place.rpartition('@')[2]}{slash}{path}"


def raise_for_status(response: httpx2.Response, lane: str, *, names_path: bool = True) -> None:
    """Raise the exception for a status of 400 or more. Unless `names_path`, its message has only
    the host: an untrusted URL may contain a secret."""
    status = response.status_code
    if status < 400:
        return
    url = response.request.url
    where = f"{_place(url) if names_path else url.host}: HTTP {status}"
    problem: RateLimited | Unavailable | AuthenticationError | HttpError
    if status == 429:
        problem = RateLimited(where, retry_after(response.headers.get("retry-after")))
        problem.resets_after = _resets_after(response)
    elif status >= 500:
        problem = Unavailable(where)
    elif status in (401, 403):
        problem = AuthenticationError(f"{where}: check the credentials")
    else:
        problem = HttpError(where, status)
    if not isinstance(problem, RateLimited):
        problem.status = status
    problem.lane, problem.response = lane, response
    problem.url = hidden(str(response.request.url))
    problem.headers = hidden(dict(response.headers))
    problem.body = _told(response)[:TOLD_BYTES]
    raise problem


def _place(url: httpx2.URL) -> str:
    """Format host, port and path: without password and parameters, which may be keys. A long part
    of the path, which may be a token, is truncated."""
    path = url.raw_path.decode("ascii", "replace").partition("?")[0].rstrip("/")
    path = LONG_PART.sub(r"\1...", path)
    if len(path) > PATH_LIMIT:
        path = path[:PATH_LIMIT] + "..."
    return url.netloc.decode("ascii", "replace") + path


def _told(response: httpx2.Response) -> str:
    """Return the beginning of the server's message, with secrets hidden, including those it was
    sent; '' if it was not read."""
    said = _said(response)
    asked = response.request
    for name, value in (*asked.headers.items(), *asked.url.params.items()):
        secret = value.rpartition(" ")[2]  # behind `Bearer`
        if secret and hidden({name: value}) != {name: value}:
            said = said.replace(secret, HIDDEN)
    return said


def _said(response: httpx2.Response) -> str:
    import httpx2

    try:
        content = response.content
    except httpx2.ResponseNotRead:
        return ""
    if len(content) <= PARSED_BYTES:
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            pass
        else:
            return json.dumps(hidden(value), ensure_ascii=False)
    text: str = hidden(content[: 2 * TOLD_BYTES].decode(response.encoding or "utf-8", "replace"))
    return text


def _resets_after(response: httpx2.Response) -> float | None:
    """Parse when the provider's quota resets, in seconds: some send a duration, some a time."""
    for name in RESET_HEADERS:
        value = response.headers.get(name, "").strip()
        if value.isdecimal() and len(value) < 15:
            told = float(value)
            seconds = told if told < EPOCHS else max(0.0, told - runtime.now())
            return min(seconds, MAX_RETRY_AFTER)
    return None
