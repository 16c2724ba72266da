"""Authenticates callers: their tenant, and what they may do."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import Annotated

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant

from penstock.adapters.sql.access import AccessStore
from penstock.errors import QueueUnavailable
from penstock.model.access import EVERYTHING, ApiKey, Caller, hash_of
from penstock.model.server import Anonymous
from penstock.server.problems import Problem
from penstock.server.ratelimit import Allowance, Limit, RateLimiter

REMEMBER_SECONDS = 5.0
"""How long a key is cached, and its revocation may go unnoticed."""
REMEMBERED = 10_000
OWN_USER = "own_user"
"""Key in a request's state: whether the connection is by the user that runs the server."""
OTHER_ORIGIN = "other_origin"
"""Key in a request's state: whether a page of another origin made the browser send it (see
cors.py)."""
BURSTS = 10
"""Share of a minute's requests that may come at once."""
FORWARDED = frozenset(
    ("forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip")
)
"""Headers that proxies add, besides those that start with X-Forwarded-."""

API = "/v1/"
FOR_TOOLS = ("/mcp", "/v1/tools", "/v1/calls")
"""Where callers may go who may only call tools."""


class Callers:
    """Authenticates callers by their keys, and counts their requests."""

    def __init__(self, access: AccessStore, per_minute: int, anonymous: Anonymous) -> None:
        self._access = access
        self._limiter = RateLimiter()
        self._per_minute = per_minute
        self._anonymous = anonymous
        self._known: OrderedDict[str, tuple[float, ApiKey | None]] = OrderedDict()

    async def caller(self, request: Request) -> Caller:
        """Authenticate the caller; raises a Problem if that is not possible."""
        secret = _secret(request)
        if secret is None:
            self._check_anonymous(request)
            return Caller("default", EVERYTHING, None)
        key = await self._key(hash_of(secret))
        if key is None:
            raise _unauthorized("unknown or revoked API key")
        per_minute = key.requests_per_minute
        return Caller(key.tenant, key.scopes, key.id, per_minute, key.name, key.tools)

    def _check_anonymous(self, request: Request) -> None:
        if self._anonymous is Anonymous.NOBODY:
            raise _unauthorized("an API key is required: Authorization: Bearer pk_...")
        if getattr(request.state, OTHER_ORIGIN, False):
            raise _unauthorized(
                "a page of another origin needs a key: Authorization: Bearer pk_..."
            )
        if any(name in FORWARDED or name.startswith("x-forwarded-") for name in request.headers):
            raise _unauthorized("requests through a proxy need an API key")
        if self._anonymous is Anonymous.OWN_USER and not getattr(request.state, OWN_USER, False):
            raise _unauthorized(
                "this was not sent by the user who runs the server, so it needs a key: "
                "Authorization: Bearer pk_... (`penstock keys create NAME` makes one); "
                "--allow-anonymous takes all who reach this port"
            )

    def take(self, caller: Caller) -> Allowance:
        """Count a request of a caller, or reject it."""
        return self._limiter.take(caller.key or "", self._limit(caller.requests_per_minute))

    def _limit(self, own: int | None) -> Limit:
        per_minute = own or self._per_minute
        return Limit(per_minute, max(1, per_minute // BURSTS))

    async def _key(self, hashed: str) -> ApiKey | None:
        now = time.monotonic()
        known = self._known.get(hashed)
        if known is not None and known[0] > now:
            return known[1]
        key = await self._access.key_by_hash(hashed)
        self._known[hashed] = (now + REMEMBER_SECONDS, key)
        self._known.move_to_end(hashed)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return key


def _secret(request: Request) -> str | None:
    if (kept := getattr(request.state, "secret", None)) is not None:
        return str(kept)  # of who looks at the dashboard; see dashboard/session.py
    given = request.headers.get("authorization")
    if given is None:
        return None
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise _unauthorized("write: Authorization: Bearer pk_...")
    return secret.strip()


def _unauthorized(detail: str) -> Problem:
    return Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


async def known(request: Request) -> Caller:
    """Dependency: the authenticated caller, within the rate limit."""
    callers: Callers = request.app.state.callers
    caller = await callers.caller(request)
    why = caller.confined()
    # Not `request.url`: it is made of the Host header, which callers choose.
    if why is not None and not _is_for_tools(request.scope["path"]):
        raise Problem(403, "forbidden", why)
    allowance = callers.take(caller)
    headers = allowance.headers()
    if not allowance.allowed:
        raise Problem(
            429,
            "rate-limited",
            f"over {allowance.limit.per_minute:,} requests a minute; "
            f"wait {allowance.retry_after} s",
            headers=headers,
        )
    # Put on the answer by the outermost layer, whatever the answer turns out to be.
    request.state.headers = headers
    request.state.caller = caller
    return caller


async def check_still_allowed(request: Request) -> None:
    """Raise a Problem once the key of a long-running request is revoked."""
    # What the stores of keys raise, wherever they are: nobody is sent away because they cannot be
    # asked.
    with suppress(QueueUnavailable):
        await request.app.state.callers.caller(request)


Known = Annotated[Caller, Depends(known)]


def _is_for_tools(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in FOR_TOOLS)


def check_parameters(request: Request) -> None:
    """Raise 422 for a parameter that the route does not have. Pages may carry others."""
    if not request.query_params or not request.url.path.startswith(API):
        return
    known = sorted(set(_parameters(request.scope["route"].dependant)))
    unknown = [name for name in request.query_params if name not in known]
    if not unknown:
        return
    name = unknown[0][:64]
    if close := get_close_matches(name, known, n=1):
        hint = f"did you mean {close[0]}?"
    else:
        hint = f"there are: {', '.join(known)}" if known else "there are none here"
    what = f"there is no such parameter; {hint}"
    raise Problem(
        422, "invalid", f"query.{name}: {what}", errors=[{"where": f"query.{name}", "what": what}]
    )


def _parameters(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for needed in dependant.dependencies:
        yield from _parameters(needed)
