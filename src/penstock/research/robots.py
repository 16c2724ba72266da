"""robots.txt rules, by RFC 9309.

They are fetched once an hour per server, through the same guard as pages, and cached in memory.
`Crawl-delay` is not part of the RFC but is observed: it becomes the minimum interval of the host's
lane, which all processes share.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from penstock.engine.context import JobContext
from penstock.errors import DocumentTooLarge, FetchError
from penstock.errors.extras import needing
from penstock.lanes.registry import LaneRegistry
from penstock.outbound.fetch import Fetched
from penstock.outbound.web_address import WebAddress
from penstock.text.user_agent import PRODUCT

if TYPE_CHECKING:
    from protego import Protego

KEPT_SECONDS = 3600.0
READ_BYTES = 500 * 1024
"""Bytes of a robots.txt that are parsed; the rest is ignored."""
SENT_BYTES = 50_000_000
"""Maximum download for that."""
MAX_ENTRIES = 1000
MAX_BYTES = 4_000_000
"""Maximum total size of cached rules. Parsed, they take many times as much memory."""
MAX_DELAY = 30.0
"""Maximum crawl delay in seconds."""
NOTHING = (204, 205)
"""Statuses besides 4xx that mean that there are no rules."""

_AGENT = re.compile(r"(?i)\s*user[- ]?agent\s*[:\s]\s*([^#]*)")
_TOKEN = re.compile(r"[a-z_-]+")

Origin = tuple[str, str, int]
"""Scheme, host and port: each has its own rules."""
LaneOf = Callable[[str], Awaitable[str]]


class Decision(NamedTuple):
    allowed: bool
    reason: str
    delay: float
    """Crawl delay in seconds."""


class Rules(NamedTuple):
    """The robots.txt rules of one server."""

    rules: Protego | None
    """None: there are none."""
    problem: str
    """Why nothing may be fetched, whatever the rules."""
    delay: float
    size: int
    until: float


class Robots:
    """robots.txt rules of web servers, cached for all jobs of a process."""

    def __init__(self, lanes: LaneRegistry, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lanes = lanes
        self._clock = clock
        self._known: dict[Origin, Rules] = {}
        self._asking: WeakValueDictionary[Origin, asyncio.Lock] = WeakValueDictionary()

    async def allowed(self, ctx: JobContext, address: WebAddress, lane_of: LaneOf) -> Decision:
        """Decide whether a page may be fetched. Raises what `ctx.fetch` raises if the server is
        unreachable or returns 5xx: then it is unknown, and the job is retried later."""
        with needing("pages of the web need", "research"):
            import protego  # noqa: F401 (here: a server that nobody asks for research has none)
        known = await self._rules(ctx, address, lane_of)
        where = f"the robots.txt of {address.host}"
        if known.problem:
            return Decision(False, f"{where} cannot be read: {known.problem}", known.delay)
        if known.rules is None:
            return Decision(True, f"{address.host} has no robots.txt", known.delay)
        if known.rules.can_fetch(address.url, PRODUCT):
            return Decision(True, f"{where} allows it", known.delay)
        return Decision(False, f"{where} asks {PRODUCT} not to fetch this page", known.delay)

    async def _rules(self, ctx: JobContext, address: WebAddress, lane_of: LaneOf) -> Rules:
        origin = (address.url.partition(":")[0], address.host, address.port)
        if (known := self._fresh(origin)) is not None:
            return known
        # One job asks, the others of this server wait. If it fails, the next one asks: whether
        # the server is in trouble takes two of them to tell.
        lock = self._asking.setdefault(origin, asyncio.Lock())
        async with lock:
            if (known := self._fresh(origin)) is None:
                known = await self._ask(ctx, address, lane_of)
                self._keep(origin, known)
                await self._pace(address.host, lane_of)
        return known

    def _fresh(self, origin: Origin) -> Rules | None:
        known = self._known.get(origin)
        return known if known is not None and self._clock() < known.until else None

    def _keep(self, origin: Origin, rules: Rules) -> None:
        self._known.pop(origin, None)  # the newest are the last
        self._known[origin] = rules
        size = sum(one.size for one in self._known.values())
        while len(self._known) > MAX_ENTRIES or size > MAX_BYTES:
            size -= self._known.pop(next(iter(self._known))).size

    async def _pace(self, host: str, lane_of: LaneOf) -> None:
        """Apply the crawl delay to the host's lane, whatever the scheme and port."""
        delays = [rules.delay for origin, rules in self._known.items() if origin[1] == host]
        self._lanes.pace(await lane_of(host), max(delays, default=0.0))

    async def _ask(self, ctx: JobContext, address: WebAddress, lane_of: LaneOf) -> Rules:
        until = self._clock() + KEPT_SECONDS
        try:
            async with ctx.fetch(
                address.joined("/robots.txt").url, most=SENT_BYTES, lane_of=lane_of
            ) as fetched:
                text = await _text(fetched)
        except FetchError as error:
            if 400 <= error.status < 500 or error.status in NOTHING:
                return Rules(None, "", 0.0, 0, until)
            return Rules(None, str(error), 0.0, 0, until)
        except DocumentTooLarge as error:
            return Rules(None, str(error), 0.0, 0, until)
        from protego import Protego

        rules = Protego.parse(ours(text))
        delay = min(rules.crawl_delay(PRODUCT) or 0.0, MAX_DELAY)
        return Rules(rules, "", delay, len(text), until)


async def _text(fetched: Fetched) -> str:
    """Decode the part that is parsed, without a truncated last line."""
    body = bytearray()
    async for part in fetched.parts:
        body += part
        if len(body) > READ_BYTES:
            return body[:READ_BYTES].decode("utf-8-sig", "replace").rpartition("\n")[0]
    return body.decode("utf-8-sig", "replace")


def ours(text: str) -> str:
    """Reduce the rules to ours and one name for all other agents: thousands of names over thousands
    of rules would be millions. A name is ours only if it matches in full."""
    lines = []
    for line in text.splitlines():
        if agent := _AGENT.match(line):
            name = agent[1].strip().lower()
            token = _TOKEN.match(name)
            if name != "*":
                name = PRODUCT if token and token[0] == PRODUCT.lower() else "other"
            line = f"user-agent: {name}"
        lines.append(line)
    return "\n".join(lines)
