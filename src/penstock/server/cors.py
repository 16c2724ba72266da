"""Cross-origin requests: which pages of other origins may call the API from a browser.

None, unless `server.origins` lists them. A page of a listed origin always needs a key: it is
another program, even if the user of this machine needs none. Cookies are neither requested nor read
(no `Access-Control-Allow-Credentials`), so the dashboard's are out of its reach.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from penstock.server.idempotency import HEADER
from penstock.telemetry import tracing

API = ("/v1/", "/mcp", "/openapi.json", "/healthz", "/readyz")
"""Prefixes of paths that pages of other origins may call: not the dashboard, nor /metrics."""
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
ASKED = (
    f"Accept, Authorization, Content-Type, {HEADER}, Last-Event-ID, Mcp-Method, Mcp-Name, "
    f"Mcp-Protocol-Version, Mcp-Session-Id, {tracing.HEADER}"
)
"""Allowed request headers."""
EXPOSED = (
    "Allow, Content-Disposition, Idempotency-Replayed, Location, RateLimit, RateLimit-Policy, "
    "Retry-After, WWW-Authenticate"
)
"""Response headers that scripts may read, besides the default ones."""
REMEMBER_SECONDS = 600
"""How long a browser may cache a preflight response."""


class Origins:
    """The allowed origins."""

    def __init__(self, named: Iterable[str]) -> None:
        self._named = frozenset(named)

    def allowed(self, path: str, headers: Headers) -> str | None:
        """Return the origin of a request if it may call this path; else None."""
        given = headers.getlist("origin")
        if len(given) != 1 or given[0] not in self._named or not path.startswith(API):
            return None
        return given[0]

    def mark(self, headers: MutableHeaders, origin: str | None) -> None:
        """Add the headers that let the origin read the response."""
        if self._named:
            headers.add_vary_header("Origin")  # also where there was none: caches keep it
        if origin is not None:
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = EXPOSED


def by_other_page(headers: Headers) -> bool:
    """Whether the browser says that a page of another origin made it send a request without naming
    that origin: an image, a GET whose response the page cannot read. Not a link that somebody
    followed."""
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    return site in ("cross-site", "same-site") and mode != "navigate"


def is_preflight(method: str, headers: Headers) -> bool:
    return method == "OPTIONS" and "access-control-request-method" in headers


def preflight(headers: Headers) -> Response:
    """Respond to a preflight request, which carries no key."""
    told = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": ASKED,
        "Access-Control-Max-Age": str(REMEMBER_SECONDS),
    }
    if headers.get("access-control-request-private-network") == "true":
        # A page from the internet that calls a server in a private network.
        told["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=told)
