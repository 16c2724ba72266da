"""Lists whose items may be large: megabytes of JSON, written beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from starlette.responses import Response, StreamingResponse

from penstock.server.answer_json import written

Item = TypeVar("Item")
Cursor = TypeVar("Cursor")

AT_ONCE = 50
PAGE_BYTES = 4_000_000
PART_BYTES = 256 * 1024
JSON = "application/json"


async def paged(
    name: str,
    fetch: Callable[[int, Cursor | None], Awaitable[Sequence[Item]]],
    cursor: Callable[[Item], Cursor],
    limit: int,
    before: Cursor | None,
) -> Response:
    """Build a page, which ends early if its items are large: a thousand of them may be too much for
    one response. `fetch` gets how many, and before which."""
    found: list[bytes] = []
    size, more = 0, True
    while more and len(found) < limit and size < PAGE_BYTES:
        wanted = min(AT_ONCE, limit - len(found))
        some = await fetch(wanted, before)
        more = len(some) == wanted
        texts = await _texts(some)
        before = cursor(some[-1]) if some else before
        found += texts
        size += sum(map(len, texts))
    return await _reply(name, found, b',"next":' + written(before if more else None))


async def whole_list(name: str, items: Sequence[Any]) -> Response:
    """Build a response with all of them."""
    return await _reply(name, await _texts(items), b"")


async def _texts(items: Sequence[Any]) -> list[bytes]:
    # One by one, so that the event loop has its turns between them.
    return await asyncio.to_thread(lambda: [written(one) for one in items])


async def _reply(name: str, texts: Sequence[bytes], rest: bytes) -> Response:
    """In parts, where there is much of it: to copy tens of megabytes takes long."""
    body = await asyncio.to_thread(
        lambda: b'{"%s":[%s]%s}\n' % (name.encode(), b",".join(texts), rest)
    )
    if len(body) <= PART_BYTES:
        return Response(body, media_type=JSON)
    length = {"content-length": str(len(body))}
    return StreamingResponse(_parts(memoryview(body)), media_type=JSON, headers=length)


async def _parts(body: memoryview) -> AsyncIterator[bytes]:
    for begin in range(0, len(body), PART_BYTES):
        yield bytes(body[begin : begin + PART_BYTES])
