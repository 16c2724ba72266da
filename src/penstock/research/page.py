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
from penstock.research.identity import canonical_url
from penstock.research.robots import Robots

TIMEOUT_SECONDS = 180.0
"""Timeout of a job that fetches a page: hosts may ask for half a minute between two requests, and a
page with redirects takes several."""
PAGES = "web"
"""Collection of the pages of research tasks."""
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
    """Derive the id of a page's document: its normalized URL, without what looks like a secret.
    Raises AddressRefused if it is not a web address."""
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
    """Store a page as a document, and return that. `documents.wait(document.ref.id, ...)` waits
    until it is searchable, or says why it cannot be read. A page fetched less than `fresh_seconds`
    ago is returned as it is.

    Every hop of a redirect is checked against the robots.txt of its host before it is made. Raises
    AddressRefused, RobotsRefused, FetchError, DocumentTooLarge or ParserError, which are final;
    Unavailable, RateLimited and LaneBusy, which the engine waits for.
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
    """Return the document if it was fetched recently and is stored or in progress."""
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
    """Classify why a page could not be read, from the error of its job or document: robots,
    address, http, too_large, unreachable, rate_limited, timeout, empty, format, encrypted,
    unreadable, or error for everything else. The error's message has the details."""
    reason = _REASONS.get(error["type"], "error")
    return _PARSER_REASONS.get(error.get("reason", ""), reason)
