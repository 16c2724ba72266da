"""Renders templates to pages, with restrictive security headers.

Jinja2 is imported with the first page, so that a server that shows none starts as quickly.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from penstock import __version__
from penstock.server.dashboard import assets
from penstock.server.problems import Problem

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LINK = re.compile(r'(?<= )(?:href|src|action|formaction|hx-[a-z:]+)="(?=/(?!/))')
"""The beginning of a link to another page of the dashboard."""
THEME = "penstock_theme"
FLASH = "penstock_flash"
FLASH_SECONDS = 60
FLASH_BYTES = 1500
"""Browsers accept no cookie of more than 4,096 bytes."""


class Screen(NamedTuple):
    path: str
    name: str
    admin: bool = False
    """Shown to admins only."""


SCREENS = (
    Screen("/", "Overview"),
    Screen("/jobs", "Jobs"),
    Screen("/lanes", "Lanes"),
    Screen("/dead-letters", "Dead letters"),
    Screen("/schedules", "Schedules"),
    Screen("/documents", "Documents"),
    Screen("/research", "Research"),
    Screen("/ask", "Ask"),
    Screen("/actions", "Actions", admin=True),
)


@functools.cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from penstock.server.dashboard.filters import FILTERS, visible

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS)
    made.globals.update(asset=assets.address, screens=SCREENS, version=__version__)
    return made


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Render a whole page. `values` are for its template; `title` is one of them."""
    flash = _flash_of(request)
    body = _render(request, template, flash=flash, **values)
    response = Response(body, status, media_type="text/html", headers=HEADERS)
    if flash is not None:
        response.delete_cookie(FLASH, httponly=True, samesite="strict")
    return response


def part(request: Request, template: str, **values: Any) -> str:
    """Render the live part of a page."""
    return _render(request, template, **values)


def _render(request: Request, template: str, **values: Any) -> str:
    theme = request.cookies.get(THEME)
    html = (
        environment()
        .get_template(template)
        .render(
            values,
            visit=getattr(request.state, "visit", None),
            vouched=getattr(request.state, "vouched", False),
            path=request.url.path,
            theme=theme if theme in ("light", "dark") else None,
        )
    )
    return below(getattr(request.state, "root", ""), html)


def below(root: str, html: str) -> str:
    """The same with its links below the path where the dashboard is mounted. A quote is escaped in
    all that comes from outside, so what looks like a link is one of a template."""
    return LINK.sub(rf"\g<0>{escape(root)}", html) if root else html


def problem_page(request: Request, problem: Problem) -> Response:
    """Render an error as a page."""
    title = problem.code.replace("-", " ").capitalize()
    response = page(request, "problem.html", problem.status, title=title, problem=problem)
    response.headers.update(problem.headers)
    return response


class Flash(NamedTuple):
    """A message about the result of an action, shown once on the next page."""

    kind: Literal["good", "bad"]
    text: str


def redirect(path: str, flash: Flash | None = None) -> Response:
    """Redirect to a page after an action."""
    response = RedirectResponse(path, 303, headers=HEADERS)
    if flash is not None:
        # In a cookie, because nobody else can make a browser show one.
        text = flash.text.encode("utf-8", "replace")[:FLASH_BYTES].decode("utf-8", "ignore")
        said = json.dumps([flash.kind, text], ensure_ascii=False).encode()
        response.set_cookie(
            FLASH,
            base64.urlsafe_b64encode(said).decode(),
            max_age=FLASH_SECONDS,
            httponly=True,
            samesite="strict",
        )
    return response


def _flash_of(request: Request) -> Flash | None:
    try:
        kind, text = json.loads(base64.urlsafe_b64decode(request.cookies[FLASH].encode()))
    except (KeyError, ValueError, TypeError):
        return None
    return Flash("good" if kind == "good" else "bad", str(text))


def paging(
    name: str, path: str, found: Sequence[Any], size: int, before: str | None, cursor: str = "id"
) -> dict[str, Any]:
    """Build the pagination of a list by `before`, in the parameter `name`. `found` has one item
    more than a page if there is another page."""
    shown = found[:size]
    following = getattr(shown[-1], cursor) if len(found) > size else None

    def at(place: str | None) -> str:
        return "?" + urlencode({"before": place}) if place else ""

    return {
        name: shown,
        "first": path if before else None,
        "following": path + at(following) if following else None,
        "address": f"/live{path}{at(before)}",
    }


def confirm(request: Request, ask: str, fields: dict[str, list[str]], back: str) -> Response:
    """Render a confirmation page, which sends the same form to the same URL. The dashboard's script
    uses a dialog instead."""
    return page(
        request,
        "confirm.html",
        title="Are you sure?",
        ask=ask,
        fields=fields,
        action=request.url.path,
        back=back,
    )
