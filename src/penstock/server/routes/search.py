"""Search."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.retrieval.search import SearchResult
from penstock.server.answer_json import reply
from penstock.server.bodies import json_body
from penstock.server.dependencies import ReadAccess
from penstock.server.draining import while_connected
from penstock.server.openapi import spec
from penstock.server.schemas import Question
from penstock.wire.view import fields_of

routes = APIRouter(tags=["documents"])


@routes.post("/v1/search", **spec(SearchResult, 200, Question))
async def search(request: Request, tenant_view: ReadAccess) -> Response:
    """Search for the passages that best answer a question. While the embedder is unreachable,
    `mode` is `text`, and `note` says why."""
    asked, _ = await json_body(request, Question)
    result = await while_connected(
        request.receive,
        tenant_view.documents.search(
            asked.question,
            tenant=tenant_view.tenant,
            collections=asked.collections,
            documents=asked.documents,
            metadata=asked.metadata,
            limit=asked.limit,
        ),
    )
    if asked.explain:
        return reply(result)
    passages = [fields_of(one) for one in result.passages]
    for passage in passages:
        del passage["why"]
    return reply({**fields_of(result), "passages": passages})
