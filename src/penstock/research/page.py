"""Stores a web page as a document, in the calling job.

What comes from the web is somebody else's: `untrusted` says so in the document's metadata, and what
is shown of it to a model is fenced (`penstock.text.untrusted`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from penstock.documents.addresses import name_of, shown
from penstock.documents.service import Documents
from penstock.engine.context import JobContext
from penstock.errors import DocumentNotFound, RobotsRefused
from penstock.model.document import Document, DocumentState
from penstock.outbound.web_address import WebAddress, web_address
from penstock.research.merge import canonical_url
from penstock.research.robots import Robots

TIMEOUT_SECONDS = 180.0
"""For a job that fetches a page: hosts may want half a minute between two requests, and a page with
redirects takes several."""
PAGES = "web"
"""The collection that pages of research tasks are in."""
FETCHED_AT = "fetched_at"
_REASONS = {
    "RobotsRefused": "robots",
    "AddressRefused": "address",
    "FetchError": "http",
    "DocumentTooLarge": "too_large",
    "Unavailable": "unreachable",
    "RateLimited": "rate_limited",
    "JobTimeout": "timeout",
    "DeadlineExceeded": "timeout",
    "ParserError": "unreadable",
}
_PARSER_REASONS = {
    "empty": "empty",
    "scanned": "empty",
    "unknown": "format",
    "encrypted": "encrypted",
    "oversized": "too_large",
    "bomb": "too_large",
    "slow": "timeout",
}


def page_id(url: str) -> str:
    """The id of the document that a page becomes: its address in one spelling, without what looks
    like a secret. AddressRefused if it is no web address."""
    address = web_address(url)
    return name_of(replace(address, url=canonical_url(address.url) or address.url))


async def fetch_page(
    ctx: JobContext,
    documents: Documents,
    url: str,
    *,
    tenant: str,
    collection: str,
    fresh_seconds: float,
    robots: Robots,
) -> Document:
    """The document that a page is or becomes; `library.wait(document.id, ...)` tells when it
    can be searched, and what was wrong if it cannot be read. One that was fetched less than
    `fresh_seconds` ago is given as it is.

    Every hop of a redirect is asked for in the robots.txt of its host before it is made. Raises
    AddressRefused, RobotsRefused, FetchError, DocumentTooLarge or ParserError, which are final;
    Unavailable, RateLimited and LaneBusy, which are the engine's to wait for.
    """
    name = page_id(url)
    known = await _fresh(documents, name, collection, tenant, fresh_seconds)
    if known is not None:
        ctx.lanes.leave()
        return known

    async def ask(address: WebAddress) -> None:
        decision = await robots.allowed(ctx, address, documents.lane_of)
        if not decision.allowed:
            raise RobotsRefused(decision.reason)

    brought = await documents.bring(ctx, url, before=ask)
    ctx.lanes.leave()
    return await documents.add(
        brought.blob,
        id=name,
        collection=collection,
        title=brought.name,
        origin=shown(web_address(brought.url)),
        metadata={FETCHED_AT: datetime.now(UTC).isoformat(timespec="seconds"), "untrusted": True},
        charset=brought.charset,
        tenant=tenant,
        priority=ctx.job.priority,
    )


async def _fresh(
    documents: Documents, name: str, collection: str, tenant: str, seconds: float
) -> Document | None:
    """The document, if it was fetched not long ago and is there or on its way."""
    try:
        document = await documents.get(name, collection=collection, tenant=tenant)
    except DocumentNotFound:
        return None
    fetched_at = document.metadata.get(FETCHED_AT)
    if document.state is DocumentState.FAILED or not isinstance(fetched_at, str):
        return None
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(fetched_at)
    except (ValueError, TypeError):  # somebody else's document under this name
        return None
    return document if age.total_seconds() < seconds else None


def reason_of(error: Mapping[str, Any]) -> str:
    """Why a page was not had, in one word for programs, from the error of its job or its document:
    robots, address, http, too_large, unreachable, rate_limited, timeout, empty, format, encrypted,
    unreadable, or error for all else. What is said of it is the error's message."""
    reason = _REASONS.get(error["type"], "error")
    return _PARSER_REASONS.get(error.get("reason", ""), reason)
