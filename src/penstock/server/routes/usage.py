"""Sums of the ledger: tokens and money that were spent."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from penstock.ports.ledger import UsageBy
from penstock.server.answer_json import reply
from penstock.server.dependencies import ReadAccess
from penstock.server.openapi import spec
from penstock.server.problems import Problem
from penstock.wire.usage import UsageList, usage_csv, usage_list

routes = APIRouter()

FirstDay = Annotated[date | None, Query(description="First day, in UTC: 2026-01-31.")]
LastDay = Annotated[date | None, Query(description="Last day, in UTC.")]
Everybody = Annotated[bool, Query(description="Of all tenants; for admins.")]


@routes.get("/v1/usage", tags=["usage"], **spec(UsageList))
async def usage(
    tenant_view: ReadAccess,
    by: UsageBy = "day",
    since: FirstDay = None,
    until: LastDay = None,
    all_tenants: Everybody = False,
    format: Literal["json", "csv"] = "json",
) -> Response:
    """Sum up the tokens and the money that the tenant has spent, by day, task, job, kind, lane or
    model. Tasks and jobs are known for as long as single requests are kept
    (`usage_retention_seconds`), all else for good."""
    if all_tenants and not tenant_view.may_control:
        raise Problem(403, "forbidden", "the usage of all tenants needs a key with the scope admin")
    tenant = None if all_tenants else tenant_view.tenant
    found = usage_list(by, await tenant_view.app.usage(by, tenant=tenant, since=since, until=until))
    if format == "csv":
        return Response(usage_csv(found), media_type="text/csv; charset=utf-8")
    return reply(found)
