"""Routes that show errors as pages, and reject cross-site requests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from penstock.errors import PenstockError
from penstock.server import guard  # noqa: F401 (paths with `{id:name}` are its own)
from penstock.server.dashboard.pages import problem_page, redirect
from penstock.server.dashboard.session import check_site
from penstock.server.problems import Problem, problem_of

LIVE = "/live/"
"""Prefix of streams, whose errors are those of the API."""


class PageRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                check_site(request)
                return await handle(request)
            except Problem as problem:
                return _told(request, problem)
            except PenstockError as error:
                known = problem_of(error)
                if known is None:
                    raise
                return _told(request, known)
            except RequestValidationError:
                return _told(request, Problem(422, "invalid", "this address has no such page"))

        return answer


def _told(request: Request, problem: Problem) -> Response:
    if request.url.path.startswith(LIVE) or wants_json(request):
        return problem.response()
    if problem.status == 401 and request.method == "GET":
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return redirect("/sign-in?" + urlencode({"next": wanted}))
    return problem_page(request, problem)


def wants_json(request: Request) -> bool:
    """Whether a script of a page sent the request; it shows errors itself."""
    return request.headers.get("accept") == "application/json"


def router() -> APIRouter:
    """Build the router of a screen. It is not part of the API and its description."""
    return APIRouter(include_in_schema=False, route_class=PageRoute)
