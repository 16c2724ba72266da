"""The desk that a route gets: that of its caller, who may do what the route does."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from penstock.desk import Desk
from penstock.model.access import Caller
from penstock.server.callers import Admin, Asker, Reader, Writer


def _desk(request: Request, caller: Caller) -> Desk:
    return Desk(request.app.state.penstock, caller.tenant)


# Asynchronous, though they wait for nothing: others are run in a thread.


async def _reading(request: Request, caller: Reader) -> Desk:
    return _desk(request, caller)


async def _writing(request: Request, caller: Writer) -> Desk:
    return _desk(request, caller)


async def _asking(request: Request, caller: Asker) -> Desk:
    return _desk(request, caller)


async def _steering(request: Request, caller: Admin) -> Desk:
    return _desk(request, caller)


ReadDesk = Annotated[Desk, Depends(_reading)]
WriteDesk = Annotated[Desk, Depends(_writing)]
AskDesk = Annotated[Desk, Depends(_asking)]
AdminDesk = Annotated[Desk, Depends(_steering)]
