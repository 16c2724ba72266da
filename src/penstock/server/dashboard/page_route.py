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
from penstock.server.dashboard.session import Form, check_site
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


Refused = (PenstockError, Problem)
"""Errors that the input of a form may cause."""


def told(error: PenstockError | Problem) -> Problem:
    """Return the problem to show on the page. Raises the error again if no input could have caused
    it."""
    problem = error if isinstance(error, Problem) else problem_of(error)
    if problem is None:
        raise error
    return problem


def typed(form: Form, *names: str) -> dict[str, str]:
    """Return the submitted fields, to show the form again."""
    return {name: form.fields.get(name, [""])[0] for name in names}


def empty(*names: str, **given: str) -> dict[str, str]:
    """An empty form."""
    return dict.fromkeys(names, "") | given


def number(form: Form, name: str, label: str) -> float | None:
    """An optional number. Problem (422) if it is not a number."""
    text = form.one(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise Problem(422, "invalid", f"{label}: {text!r} is not a number") from None


def whole_number(form: Form, name: str, label: str) -> int | None:
    value = number(form, name, label)
    if value is None:
        return None
    if value != value // 1 or abs(value) > 2**53:
        raise Problem(422, "invalid", f"{label} must be a whole number")
    return int(value)
