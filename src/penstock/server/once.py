"""Idempotency-Key: a request that is made twice is carried out once.

What is made gets an id that follows from the key. So when a server dies between making it and
keeping the answer, whoever sends the request again makes nothing twice.
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

from penstock.model.errors import PenstockError
from penstock.model.ids import child_id, new_id
from penstock.ports.access import AccessStore, Begun, Conflict, Done, InProgress
from penstock.server.problems import Problem

log = logging.getLogger("penstock.server")

HEADER = "Idempotency-Key"
KEY_LIMIT = 255
KEPT = ("location", "content-type")
REPLAYED = {"Idempotency-Replayed": "true"}


def fingerprint(request: Request, *content: Any) -> str:
    """What must be the same for two requests to be the same one."""
    told = [request.method, request.url.path, request.url.query, *content]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def made_id(request: Request, tenant: str) -> str:
    """The id of what a request makes: that of its key, or a new one."""
    key = _key(request)
    return new_id() if key is None else child_id(f"{tenant}\x1f{_route(request)}", "once", key, 1)


async def once(
    request: Request,
    tenant: str,
    print_of: str,
    made: str,
    make: Callable[[], Awaitable[Response]],
) -> Response:
    """What `make` answers, or what it answered the last time. `made` is the id others are told
    while it is under way."""
    key = _key(request)
    if key is None:
        return await make()
    access: AccessStore = request.app.state.access
    route = _route(request)
    holder = f"{made}:{new_id()}"
    begun = await access.begin(tenant, route, key, print_of, holder)
    match begun:
        case Done():
            return Response(begun.body, begun.status, headers=dict(begun.headers) | REPLAYED)
        case InProgress():
            raise Problem(
                409,
                "in-progress",
                "the same request is being carried out; ask for what it makes by this id",
                id=begun.id.rpartition(":")[0],
                headers={"Retry-After": "1"},
            )
        case Conflict():
            raise Problem(
                422, "key-reused", f"this {HEADER} was used for a request with another content"
            )
        case Begun():
            pass
    try:
        response = await make()
    except (PenstockError, Problem, asyncio.CancelledError):
        await _abandon(access, tenant, route, key, holder)
        raise
    headers = [(name, response.headers[name]) for name in KEPT if name in response.headers]
    try:
        await access.finish(
            tenant, route, key, holder, response.status_code, headers, bytes(response.body)
        )
    except PenstockError as error:
        # It is made, and its id follows from the key: sent again, it makes nothing new.
        log.warning("cannot keep the answer to a request: %s", error)
    return response


async def _abandon(access: AccessStore, tenant: str, route: str, key: str, holder: str) -> None:
    try:
        await access.abandon(tenant, route, key, holder)
    except PenstockError as error:
        log.warning("cannot free the key of a request, which frees itself later: %s", error)


def _route(request: Request) -> str:
    return f"{request.method} {request.scope['route'].path}"


def _key(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is not None and not (0 < len(key) <= KEY_LIMIT and key.isprintable()):
        raise Problem(422, "invalid", f"{HEADER} is 1 to {KEY_LIMIT} printable characters")
    return key
