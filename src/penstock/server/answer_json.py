"""JSON responses."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from penstock.model.access import KeyScope
from penstock.wire.view import plain

TOLD = ("id", "answer_id", "collection", "state", "name", "paused")
"""Fields that callers without the scope `read` get of what they change."""


def reply(
    content: Any, status: int = 200, *, location: str | None = None, **headers: str
) -> Response:
    if location is not None:
        headers["Location"] = location
    body = written(content) + b"\n"  # for whoever reads it in a terminal
    return Response(body, status, media_type="application/json", headers=headers)


def for_caller(request: Request, answer: Response) -> Response:
    """Reduce a response about something stored to its id and state, for callers without the scope
    `read`."""
    if KeyScope.READ in request.state.caller.scopes:
        return answer
    whole = json.loads(bytes(answer.body))
    told = reply({name: whole[name] for name in TOLD if name in whole}, answer.status_code)
    kept = {name: value for name, value in answer.headers.items() if name not in told.headers}
    told.headers.update(kept)
    return told


def written(content: Any) -> bytes:
    """Serialize as JSON."""
    text = json.dumps(content, default=plain, ensure_ascii=False, separators=(",", ":"))
    # "replace": a lone surrogate cannot be sent, and must not make the rest unreadable.
    return text.encode("utf-8", "replace")


def at(*names: str) -> str:
    """Build the path of a resource, with its names escaped: an id may contain a slash."""
    return "/v1/" + "/".join(quote(name, safe="") for name in names)
