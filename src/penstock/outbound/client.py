"""The connection pools of a process."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock import runtime
from penstock.outbound.certificates import trusted
from penstock.outbound.web_address import Allow
from penstock.text.user_agent import user_agent

if TYPE_CHECKING:
    import httpx2

    from penstock.outbound.guard import GuardedClient, Resolver

KEPT_SECONDS = 3.0
"""How long an idle connection is used again. Many servers end theirs after 5 s, without a word: a
request that crosses that on its way is lost, and nobody can tell whether it was read."""


class HttpClient:
    """The connection pools of a process: one for URLs from its own code, and a guarded one."""

    def __init__(
        self, allow: Allow = frozenset(), contact: str = "", trace_hosts: Iterable[str] = ()
    ) -> None:
        self.trace_hosts = frozenset(host.lower() for host in trace_hosts)
        """Hosts that receive the trace context: your own services."""
        self.allow = allow
        """Private addresses that the guarded client may reach."""
        self.agent = user_agent(contact)
        """User agent."""
        self._client: httpx2.AsyncClient | None = None
        self._guarded: GuardedClient | None = None
        self._resolver: Resolver | None = None

    async def get(self) -> httpx2.AsyncClient:
        """Return the client, with everything preloaded that a first request needs: loading takes
        longer than a permit may be late."""
        if self._client is None:
            from http.cookiejar import CookieJar, DefaultCookiePolicy

            import anyio.lowlevel  # here, because many processes make no requests
            import httpx2

            _hush()
            limits = httpx2.Limits(
                max_connections=100,
                max_keepalive_connections=20,
                keepalive_expiry=KEPT_SECONDS,
            )
            # Jobs of all tenants share it: what one is told to remember is not sent by another.
            forgetful = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            self._client = httpx2.AsyncClient(
                verify=trusted(),
                limits=limits,
                cookies=forgetful,
                transport=runtime.http_transport(),
            )
            await anyio.lowlevel.checkpoint()
        return self._client

    async def guarded(self) -> GuardedClient:
        """Return the client for untrusted URLs."""
        if self._guarded is None:
            import anyio.lowlevel

            from penstock.outbound.guard import GuardedClient, GuardedNetwork, Resolver

            self._resolver = Resolver()
            self._guarded = GuardedClient(GuardedNetwork(self.allow, self._resolver))
            await anyio.lowlevel.checkpoint()
        return self._guarded

    async def close(self) -> None:
        for client in (self._client, self._guarded):
            if client is not None:
                await client.aclose()
        if self._resolver is not None:
            self._resolver.close()
        self._client = self._guarded = self._resolver = None


def _hush() -> None:
    """Silence the library's INFO log, which contains full URLs with keys and queries, unless
    somebody has set the level of its logger."""
    logger = logging.getLogger("httpx2")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
