"""Idempotency-Key: executes a repeated request once.

What a request creates gets the id in its record. So if a server dies between creating it and
storing the response, repeating the request creates nothing twice; once the record expires, after
`idempotency_seconds`, the key creates something new.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.adapters.sql.access import AccessStore
from penstock.errors import PenstockError, QueueUnavailable, StoreUnavailable, Unavailable
from penstock.model.access import Begun, Conflict, Done, InProgress
from penstock.model.ids import new_id
from penstock.server.problems import Problem

log = logging.getLogger("penstock.server")

HEADER = "Idempotency-Key"
KEY_LIMIT = 255
KEPT = ("location", "content-type")
REPLAYED = {"Idempotency-Replayed": "true"}


def _fingerprint(request: Request, *content: Any) -> str:
    # How long a caller waits for it is no part of what is asked for.
    asked = [one for one in request.query_params.multi_items() if one[0] != "wait"]
    told = [request.method, request.url.path, asked, *content]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


async def once(
    request: Request, make: Callable[[str], Awaitable[Response]], *content: Any, made: str = ""
) -> Response:
    """Execute `make` once, or repeat its previous response. Requests are the same if their
    `content` is equal, too. `made` is a new id for what it creates, reported to others while it is
    in progress; if it was begun before, `make` gets that id."""
    key = _key(request)
    if key is None:
        return await make(made)
    access: AccessStore = request.app.state.access
    route = _route(request)
    holder = new_id()
    tenant = request.state.caller.tenant
    same = _fingerprint(request, *content)
    begun = await access.begin(tenant, route, key, same, holder, made)
    match begun:
        case Done():
            return Response(begun.body, begun.status, headers=dict(begun.headers) | REPLAYED)
        case InProgress():
            raise Problem(
                409,
                "in-progress",
                "the same request is in progress; ask for what it makes by this id"
                if begun.made
                else "the same request is in progress",
                headers={"Retry-After": "1"},
                **({"id": begun.made} if begun.made else {}),
            )
        case Conflict():
            raise Problem(
                422, "key-reused", f"this {HEADER} was used for a request with another content"
            )
        case Begun():
            pass
    try:
        response = await make(begun.made)
    except (QueueUnavailable, StoreUnavailable, Unavailable, asyncio.CancelledError):
        # It may be made: the key keeps its id.
        await _end(access.release, tenant, route, key, holder)
        raise
    except (PenstockError, Problem):
        await _end(access.abandon, tenant, route, key, holder)
        raise
    headers = [(name, response.headers[name]) for name in KEPT if name in response.headers]
    try:
        await access.finish(
            tenant, route, key, holder, response.status_code, headers, bytes(response.body)
        )
    except PenstockError as error:
        # It is made, and the record has its id: sent again, it makes nothing new.
        log.warning("cannot store the response for an idempotency key: %s", error)
    return response


async def _end(end: Callable[..., Awaitable[bool]], *request: str) -> None:
    try:
        await end(*request)
    except PenstockError as error:
        log.warning("cannot release an idempotency key; it expires later: %s", error)


def _route(request: Request) -> str:
    return f"{request.method} {request.scope['route'].path}"


def _key(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is not None and not (0 < len(key) <= KEY_LIMIT and key.isprintable()):
        raise Problem(422, "invalid", f"{HEADER} is 1 to {KEY_LIMIT} printable characters")
    return key
