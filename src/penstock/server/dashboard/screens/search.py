"""Search: a question, and the best passages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from penstock.retrieval.search import SearchResult
from penstock.server.dashboard.page_route import Refused, router, told
from penstock.server.dashboard.pages import page
from penstock.server.dashboard.session import Reading
from penstock.server.draining import while_connected
from penstock.server.problems import Problem

routes = router()

FOUND = 20


@routes.get("/search")
async def search(
    request: Request,
    visit: Reading,
    q: Annotated[str, Query(max_length=10_000)] = "",
    collection: Annotated[str, Query(max_length=240)] = "",
) -> Response:
    result: SearchResult | None = None
    wrong: Problem | None = None
    if q.strip():
        try:
            result = await while_connected(
                request.receive,
                visit.documents.search(
                    q,
                    tenant=visit.tenant,
                    collections=[collection] if collection else None,
                    limit=FOUND,
                ),
            )
        except Refused as error:
            wrong = told(error)
    return page(
        request,
        "search.html",
        200 if wrong is None else wrong.status,
        title="Search",
        asked=q,
        collection=collection,
        result=result,
        wrong=wrong,
    )
