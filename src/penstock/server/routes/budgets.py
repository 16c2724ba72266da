"""Budgets of tenants and tasks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.api.tenant_view import TenantView
from penstock.errors import BudgetNotFound
from penstock.model.budget import tasks_of
from penstock.server.actions import acting
from penstock.server.answer_json import reply
from penstock.server.bodies import json_body
from penstock.server.dependencies import AdminAccess, ReadAccess
from penstock.server.openapi import spec
from penstock.server.schemas import NewBudget
from penstock.wire.budgets import BudgetList, BudgetRemoved, BudgetView, budget_list, budget_view

routes = APIRouter()


def _may_see(tenant_view: TenantView, payer: str) -> bool:
    own = tenant_view.tenant
    return tenant_view.may_control or payer == f"tenant:{own}" or payer.startswith(tasks_of(own))


@routes.get("/v1/budgets", tags=["usage"], **spec(BudgetList))
async def budgets(tenant_view: ReadAccess) -> Response:
    """List the budgets of the tenant and of its tasks; for admins, all."""
    found = await tenant_view.app.budgets.list()
    return reply(budget_list([one for one in found if _may_see(tenant_view, one.payer)]))


@routes.get("/v1/budgets/{payer:path}", tags=["usage"], **spec(BudgetView))
async def budget(tenant_view: ReadAccess, payer: str) -> Response:
    """Return one budget, `tenant:NAME` or `task:TENANT/ID`, and what is spent of it."""
    if not _may_see(tenant_view, payer):
        raise BudgetNotFound(payer)
    return reply(budget_view(await tenant_view.app.budgets.get(payer)))


@routes.put("/v1/budgets/{payer:path}", tags=["usage"], **spec(BudgetView, 200, NewBudget))
async def set_budget(request: Request, tenant_view: AdminAccess, payer: str) -> Response:
    """Give a tenant or a task a budget, or another one. What is spent in this period stays spent;
    what a raised budget has room for goes on at once."""
    given, _ = await json_body(request, NewBudget)
    limits = given.model_dump()
    async with acting(request, "budget.set", payer, budget=limits):
        state = await tenant_view.app.budgets.set(payer, **limits)
    return reply(budget_view(state))


@routes.delete("/v1/budgets/{payer:path}", tags=["usage"], **spec(BudgetRemoved))
async def remove_budget(request: Request, tenant_view: AdminAccess, payer: str) -> Response:
    """Remove a budget: what it has paused goes on."""
    async with acting(request, "budget.remove", payer):
        await tenant_view.app.budgets.remove(payer)
    return reply(BudgetRemoved(payer))
