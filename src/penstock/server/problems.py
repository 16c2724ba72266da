"""Converts errors to `application/problem+json`, with the code and status of each class."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match

from penstock.errors import KeyConflict, PenstockError
from penstock.server.answer_json import written

log = logging.getLogger("penstock.server")

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
"""Retry-After while the queue or the store is unreachable."""
GONE_AWAY = 499
"""Status for callers that have hung up; never sent."""


class Problem(Exception):
    """An error response."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more

    def body(self) -> bytes:
        told = {
            "type": f"urn:penstock:{self.code}",
            "title": self.code.replace("-", " "),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.more,
        }
        return written(told) + b"\n"

    def response(self) -> Response:
        return Response(self.body(), self.status, media_type=MEDIA_TYPE, headers=self.headers)


def busy(code: str, detail: str, seconds: float = RETRY_SECONDS) -> Problem:
    """Build a 503: nothing is stored, and when to retry."""
    return Problem(503, code, detail, headers={"Retry-After": str(max(1, round(seconds)))})


def problem_of(error: PenstockError) -> Problem | None:
    """Convert an error of the library; None for what no caller could have caused."""
    if error.http_status == 500:
        return None
    if error.http_status == 503:
        log.info("answered with 503: %s", error)
        return busy(error.code, error.public)
    more: dict[str, Any] = {"id": error.job_id} if isinstance(error, KeyConflict) else {}
    return Problem(error.http_status, error.code, error.public or str(error), **more)


PageOf = Callable[[Request, Problem], Response]
"""Renders a problem as a page."""


def for_people(request: Request) -> bool:
    """Whether a browser requests a page."""
    return "text/html" in request.headers.get("accept", "")


def install(api: FastAPI, page_of: PageOf) -> None:
    """Install handlers that convert every error of a request to a problem."""

    @api.exception_handler(Problem)
    async def told(request: Request, error: Problem) -> Response:
        return error.response()

    @api.exception_handler(PenstockError)
    async def ours(request: Request, error: PenstockError) -> Response:
        problem = problem_of(error)
        if problem is None:
            raise error  # see `unforeseen`
        return problem.response()

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        # Not the input itself, which may be anything and of any size.
        errors = [
            {"where": ".".join(map(str, one["loc"])), "what": str(one["msg"])}
            for one in error.errors()[:20]
        ]
        detail = "; ".join(f"{one['where']}: {one['what']}" for one in errors[:3])
        return Problem(422, "invalid", detail, errors=errors).response()

    @api.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            allowed = ", ".join(sorted(_methods(request)))
            return Problem(
                405, "method-not-allowed", f"allowed here: {allowed}", headers={"Allow": allowed}
            ).response()
        if error.status_code == 404:
            if for_people(request):
                missing = Problem(404, "not-found", "no such page")
                return page_of(request, missing)
            root = request.scope.get("state", {}).get("root", "")  # if it is mounted
            return Problem(
                404,
                "not-found",
                f"nothing is at this path; {root}/openapi.json says what there is, and a slash in "
                "an id is written %2F",
            ).response()
        return Problem(
            error.status_code, "bad-request", str(error.detail), headers=error.headers
        ).response()

    @api.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=GONE_AWAY)


def _methods(request: Request) -> set[str]:
    """Return the methods allowed at this path: each method is a separate route. `/v1/jobs/cancel`
    is not the job called cancel."""
    routes = request.app.state.routes
    found = [one for one in routes if one.matches(request.scope)[0] is not Match.NONE]
    exact = [one for one in found if not one.param_convertors]
    return {method for one in exact or found for method in one.methods}


def unforeseen(method: str, route: str, error: Exception) -> Problem:
    """Handle an error that no caller could have caused. Only its type is reported, and where it was
    raised is logged: its message may quote a document."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s %s failed: %s\n%s", method, route, type(error).__name__, where.rstrip())
    return Problem(500, "internal", f"internal error ({type(error).__name__}); see the server log")
