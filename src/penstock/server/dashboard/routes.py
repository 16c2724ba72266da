"""The dashboard's routes: shared ones, and those of each screen."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from penstock.server.actions import acting
from penstock.server.bodies import AT_ONCE
from penstock.server.callers import known
from penstock.server.dashboard import assets
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import Flash, page, redirect
from penstock.server.dashboard.screens import (
    actions,
    ask,
    dead_letters,
    document,
    documents,
    job,
    jobs,
    lanes,
    overview,
    research,
    schedules,
    search,
    task,
)
from penstock.server.dashboard.session import local_path, read_form, sign_in, sign_out
from penstock.server.problems import Problem

Next = Annotated[str, Query(max_length=2000)]

shared = router()


@shared.get("/static/{tag}/{name:path}")
async def static(request: Request, tag: str, name: str) -> Response:
    return assets.serve(request, tag, name)


@shared.get("/sign-in")
async def ask_for_key(request: Request, next: Next = "/") -> Response:
    return page(request, "sign_in.html", title="Sign in", next=local_path(next), wrong=None)


@shared.post("/sign-in")
async def take_key(request: Request) -> Response:
    form = await read_form(request, AT_ONCE)  # anybody may send one
    onward = local_path(form.one("next", "/"))
    request.state.secret = form.one("key")
    try:
        caller = await known(request)
    except Problem as problem:
        if problem.status != 401:
            raise
        return page(
            request, "sign_in.html", 401, title="Sign in", next=onward, wrong=problem.detail
        )
    async with acting(request, "key.sign-in", caller.name):
        response = redirect(onward)
    sign_in(request, response, form.one("key"))
    return response


@shared.post("/sign-out")
async def forget_key(request: Request) -> Response:
    response = redirect("/sign-in", Flash("good", "You are signed out."))
    sign_out(request, response)
    return response


# Another screen is a file in screens/, and its routes here.
SCREENS = (
    overview,
    jobs,
    job,
    lanes,
    dead_letters,
    schedules,
    documents,
    document,
    search,
    research,
    task,
    ask,
    actions,
)
ALL = [one.routes for one in SCREENS] + [shared]
