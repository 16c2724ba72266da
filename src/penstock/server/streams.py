"""Common parts of event streams: limits, resumption, description."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request

from penstock.server.callers import check_still_allowed
from penstock.server.events import EventStream
from penstock.server.problems import Problem, busy

NOTHING: Mapping[str, str] = {}
END = "-end"
"""Suffix of the id of the last event: a reader that has seen it does not get it again."""


async def _resume(
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=2000)] = None,
    last_event_id: Annotated[str | None, Query(max_length=2000)] = None,
) -> str | None:
    """Return where a reader resumes: from the header that browsers send, or the query parameter."""
    return last if last is not None else last_event_id


Resume = Annotated[str | None, Depends(_resume)]


def described(*names: str) -> dict[int | str, dict[str, Any]]:
    """Describe a stream of these events, for `responses` of its route."""
    event = {
        "type": "object",
        "properties": {
            "event": {"enum": [*names, "bye"]},
            "id": {"type": "string", "description": "To resume after it, as Last-Event-ID."},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"type": "object"},
            },
            "retry": {"type": "integer"},
        },
    }
    return {
        200: {"content": {"text/event-stream": {"schema": event}}},
        204: {"description": "The stream has ended, and its end was seen."},
    }


def version_of(resume: str | None) -> tuple[int | None, bool]:
    """Parse the version to resume after, and whether the reader has seen the end. None: not one of
    our ids."""
    if resume is None:
        return 0, False
    number = resume.removesuffix(END)
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        return None, False
    return int(number), resume.endswith(END)


def check_room(request: Request) -> None:
    """Raise 503 if there are too many streams, in total or of the caller's tenant."""
    metrics, config = request.app.state.metrics, request.app.state.config
    if metrics.streams.total() >= config.max_streams:
        raise busy("too-many-streams", f"{config.max_streams:,} streams are open")
    if metrics.streams[request.state.caller.tenant] >= config.max_streams_per_tenant:
        most = config.max_streams_per_tenant
        raise busy("too-many-streams", f"{most:,} streams of this tenant are open")


def stream(
    request: Request, events: AsyncGenerator[bytes], headers: Mapping[str, str] = NOTHING
) -> EventStream:
    """Build a response that streams these events for as long as its caller may read them; with its
    own `headers`."""
    check_room(request)
    state = request.app.state

    async def allowed() -> bool:
        try:
            await check_still_allowed(request)
        except Problem:
            return False
        return True

    counted = state.metrics.stream(request.state.caller.tenant)
    return EventStream(events, state.draining, counted, state.config, allowed, headers)
