"""Dependencies of routes: the tenant view of an authorised caller."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from penstock.api.tenant_view import TenantView
from penstock.model.access import Caller
from penstock.server.callers import Admin, PermitHolder, Reader, Writer


def _desk(request: Request, caller: Caller) -> TenantView:
    return TenantView(request.app.state.penstock, caller.tenant)


# Asynchronous, though they wait for nothing: others are run in a thread.


async def _reading(request: Request, caller: Reader) -> TenantView:
    return _desk(request, caller)


async def _writing(request: Request, caller: Writer) -> TenantView:
    return _desk(request, caller)


async def _asking(request: Request, caller: PermitHolder) -> TenantView:
    return _desk(request, caller)


async def _steering(request: Request, caller: Admin) -> TenantView:
    return _desk(request, caller)


ReadDesk = Annotated[TenantView, Depends(_reading)]
WriteDesk = Annotated[TenantView, Depends(_writing)]
AskDesk = Annotated[TenantView, Depends(_asking)]
AdminDesk = Annotated[TenantView, Depends(_steering)]
