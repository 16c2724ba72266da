"""Authenticates visitors of the dashboard: by a key in a cookie, or as the anonymous user of this
machine.

The cookie holds the key itself, so there is no session to keep: any server of the queue knows it,
and it is good for nothing once the key is revoked. It is read for pages only, never for the API.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Depends, Request
from starlette.responses import Response

from penstock.model.access import KeyScope
from penstock.server.bodies import AT_ONCE, require, whole
from penstock.server.callers import known
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem

COOKIE = "penstock_key"
FORM = "application/x-www-form-urlencoded"
FIELDS = 12_000
"""Maximum fields of a form: ten thousand selected ids, and the rest."""
SAFE = ("GET", "HEAD")


def _visit(scope: KeyScope) -> Any:
    """Dependency: the view of a visitor with this scope."""

    async def visit(request: Request) -> CallerView:
        secret = request.cookies.get(COOKIE)
        if secret and "authorization" not in request.headers:
            request.state.secret = secret
        caller = await known(request)
        view = request.state.visit = CallerView(request.app.state.penstock, caller)
        if (lacks := caller.lacks(scope)) is not None:
            raise Problem(403, "forbidden", lacks)
        return view

    return Depends(visit)


Reading = Annotated[CallerView, _visit(KeyScope.READ)]
Writing = Annotated[CallerView, _visit(KeyScope.WRITE)]
Controlling = Annotated[CallerView, _visit(KeyScope.ADMIN)]


def check_site(request: Request) -> None:
    """Reject requests that a page of another site makes a browser send. A foreign `Origin` is
    rejected for every route (see guard.py); here the browser must also confirm that it is ours."""
    if request.method in SAFE:
        return
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin") or (site is None and "origin" not in request.headers):
        raise Problem(403, "wrong-origin", "this is done from a page of the dashboard, or by API")


class Form:
    """The fields of a submitted form."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self.fields = fields

    def one(self, name: str, default: str = "") -> str:
        return self.fields.get(name, [default])[0].strip()

    def all(self, name: str) -> list[str]:
        return self.fields.get(name, [])

    @property
    def confirmed(self) -> bool:
        return self.one("confirmed") == "yes"


async def read_form(request: Request, most: int | None = None) -> Form:
    """Read a form of at most that many bytes, or as many as a body of JSON may have."""
    require(request, FORM)
    body = await whole(request, most)
    try:
        few = len(body) <= AT_ONCE
        fields = _fields(body) if few else await asyncio.to_thread(_fields, body)
    except ValueError:
        raise Problem(422, "invalid", f"no form, or one of over {FIELDS:,} fields") from None
    if any("\0" in value for values in fields.values() for value in values):
        raise Problem(422, "invalid", "no name and no filter holds a NUL")
    return Form(fields)


def _fields(body: bytes) -> dict[str, list[str]]:
    return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=FIELDS, errors="strict")


def sign_in(request: Request, response: Response, secret: str) -> None:
    response.set_cookie(COOKIE, secret, httponly=True, samesite="strict", secure=is_https(request))


def sign_out(request: Request, response: Response) -> None:
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=is_https(request))


def is_https(request: Request) -> bool:
    """Whether the browser uses HTTPS; a proxy that terminates TLS connects by plain HTTP."""
    return request.headers.get("origin", "").startswith("https:")


def local_path(given: str) -> str:
    """Return a path on this server to redirect to, whatever was requested."""
    safe = given.startswith("/") and not given.startswith(("//", "/\\")) and given.isprintable()
    return given if safe else "/"
