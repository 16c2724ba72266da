"""Search."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.server.answer_json import reply
from penstock.server.bodies import parse, require, whole
from penstock.server.dependencies import ReadDesk
from penstock.server.draining import while_connected
from penstock.server.openapi import takes
from penstock.server.schemas import Found, Question

routes = APIRouter(tags=["documents"])


@routes.post(
    "/v1/search",
    responses={200: {"model": Found}},
    openapi_extra=takes(Question),
)
async def search(request: Request, desk: ReadDesk) -> Response:
    """The passages that answer a question best. `mode` is `text`, and `note` says why, while the
    embedder cannot be reached."""
    require(request, "application/json")
    asked = parse(await whole(request), Question)
    result = await while_connected(
        request.receive,
        desk.documents.search(
            asked.question,
            tenant=desk.tenant,
            collections=asked.collections,
            documents=asked.documents,
            metadata=asked.metadata,
            limit=asked.limit,
        ),
    )
    found = result.as_dict()
    if not asked.explain:
        for passage in found["passages"]:
            del passage["why"]
    return reply(found)
