"""Dependencies of routes: the tenant view of an authorised caller."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from penstock.api.tenant_view import TenantView
from penstock.model.access import Caller
from penstock.server.callers import Admin, PermitHolder, Reader, Writer


def _tenant_view(request: Request, caller: Caller) -> TenantView:
    return TenantView(request.app.state.penstock, caller.tenant)


# Asynchronous, though they wait for nothing: others are run in a thread.


async def _reading(request: Request, caller: Reader) -> TenantView:
    return _tenant_view(request, caller)


async def _writing(request: Request, caller: Writer) -> TenantView:
    return _tenant_view(request, caller)


async def _asking(request: Request, caller: PermitHolder) -> TenantView:
    return _tenant_view(request, caller)


async def _controlling(request: Request, caller: Admin) -> TenantView:
    return _tenant_view(request, caller)


ReadAccess = Annotated[TenantView, Depends(_reading)]
WriteAccess = Annotated[TenantView, Depends(_writing)]
AskAccess = Annotated[TenantView, Depends(_asking)]
AdminAccess = Annotated[TenantView, Depends(_controlling)]
