"""`ctx.http`: an HTTP client that observes lanes and deadlines."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin, urlsplit

from penstock import runtime
from penstock.errors import (
    AuthenticationError,
    HttpError,
    LaneBusy,
    PenstockError,
    RateLimited,
    Unavailable,
    ValidationError,
)
from penstock.lanes.reports import report_of
from penstock.model.redact import HIDDEN, hidden
from penstock.outbound.certificates import trusted
from penstock.outbound.spans import answered, naming, requesting
from penstock.outbound.web_address import Allow
from penstock.ports.lanes import ErrorReports
from penstock.text.retry_after import LONGEST_RETRY_AFTER, retry_after
from penstock.text.user_agent import user_agent

if TYPE_CHECKING:
    import httpx2

    from penstock.outbound.guard import GuardedClient, Resolver
    from penstock.ports.provider import ProviderLanes

READ_TRIES = 3
"""Attempts at an idempotent read within one run, each with its own permit."""
READ_PAUSE = 0.2
RATE_LIMITED_TRIES = 8
"""Attempts at a request that gets 429, within one run. By then the lane is at its slowest, if the
request was alone in it."""
MOMENT = 0.001
HOPS = 10
BODY_LIMIT = 64 * 1024 * 1024
TOLD_BYTES = 4096
"""Bytes of an error response that are kept with the exception, as text."""
TOLD_SECONDS = 2.0
LONG_PART = re.compile(r"(?<=/)([^/]{4})[^/]{16,}")
PATH_LIMIT = 100
"""Maximum characters of a path in an error message; its `url` is complete."""
PARSED_BYTES = 65536
"""Maximum size of JSON in which secrets are hidden by name."""
REDIRECTS = (301, 302, 303, 307, 308)
RESET_HEADERS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
EPOCHS = 1e9
"""A larger number is a timestamp, not a number of seconds."""
BRIEF = (502, 503, 504)
SECRETS = (
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "crossref-plus-api-token",
)
"""Headers that are sent only to the host that the caller named."""


class RequestOwner(Protocol):
    """Owner of requests, with a deadline: a run of a job, or a request to a service in this
    process."""

    @property
    def lane(self) -> str:
        """Default lane of its requests; '' for none."""
        ...

    def left(self) -> float:
        """Seconds until the deadline; negative after it."""
        ...

    def overdue(self) -> PenstockError:
        """The exception to raise when no time is left."""
        ...


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
            limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20)
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


class JobHttp:
    """One job's requests.

    Each takes a permit: in `lane` if given, else in the job's own lane, else in the lane of
    the host. The job's first request in its own lane uses the permit it was started with.
    Errors are raised as what they mean: Unavailable, RateLimited, AuthenticationError, or
    HttpError for other 4xx, which is not retried. With `again` a request that is answered 429 is
    made again under a permit of that, up to RATE_LIMITED_TRIES times in all.
    """

    def __init__(
        self,
        client: Callable[[], Awaitable[httpx2.AsyncClient | GuardedClient]],
        run: RequestOwner,
        lanes: ProviderLanes,
        *,
        probed: bool = True,
        trace_hosts: frozenset[str] = frozenset(),
        again: ProviderLanes | None = None,
    ) -> None:
        self._client = client
        self._run = run
        self._lanes = lanes
        self._again = again
        self._trace_hosts = trace_hosts
        """Hosts that receive the trace context."""
        self._probed = probed
        """Whether unreachable addresses may be probed: a probe resolves names again, unguarded."""

    @property
    def reports(self) -> ErrorReports:
        """Lane reports about its errors."""
        return self._lanes.reports

    async def get(self, url: str, **options: Any) -> httpx2.Response:
        return await self.request("GET", url, **options)

    async def post(self, url: str, **options: Any) -> httpx2.Response:
        return await self.request("POST", url, **options)

    async def request(
        self,
        method: str,
        url: str,
        *,
        lane: str | None = None,
        max_bytes: int = BODY_LIMIT,
        patience: float | None = None,
        **options: Any,
    ) -> httpx2.Response:
        """Send a request and read the response. Reads are retried briefly, writes never. Waits for
        each permit until the deadline, or for `patience` seconds; then raises LaneBusy."""
        method = method.upper()
        tries = READ_TRIES if method in ("GET", "HEAD") else 1
        for attempt in range(1, tries + 1):
            try:
                return await self._follow(method, url, lane, max_bytes, patience, options)
            except Unavailable as error:
                brief = error.status in (None, *BRIEF) and not isinstance(error, RateLimited)
                pause = READ_PAUSE * attempt
                if attempt == tries or not brief or self._left() <= pause:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        lane: str | None = None,
        max_bytes: int = BODY_LIMIT,
        silence: float | None = None,
        patience: float | None = None,
        **options: Any,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream the body, under one permit that is held until the block ends. Nothing is retried,
        and redirects are not followed. Raises Unavailable if the stream breaks off, or is silent
        for `silence` seconds once it has started."""
        name = lane or self._run.lane or host_lane(_host(url))
        async with self.exchange(method, url, name, options, patience) as response:
            if response.status_code >= 400:
                raise_for_status(await _beginning(response, url), name)
            if response.status_code >= 300:
                status = response.status_code
                raise HttpError(f"{_shown(url)}: HTTP {status} is not followed", status)
            async with aclosing(_parts(response, url, max_bytes, silence)) as parts:
                yield parts

    async def _follow(
        self,
        method: str,
        url: str,
        lane: str | None,
        limit: int,
        patience: float | None,
        options: dict[str, Any],
    ) -> httpx2.Response:
        """Follow redirects, each hop with a permit in the lane of its host."""
        first_host = _host(url)
        lane = lane or self._run.lane or None
        for _ in range(HOPS):
            here = lane if _host(url) == first_host else None
            response = await self._once(method, url, here, limit, patience, options)
            target = response.headers.get("location")
            if response.status_code not in REDIRECTS or not target:
                return response
            before, url = url, urljoin(url, target)
            # Where a redirect leads is all in its address.
            options = {name: value for name, value in options.items() if name != "params"}
            if _host(url) != _host(before):
                options = _without_secrets(options)
            if response.status_code == 303 or (response.status_code < 307 and method == "POST"):
                method, options = "GET", {}
        raise HttpError(f"{_shown(url)}: more than {HOPS} redirects", 0)

    async def _once(
        self,
        method: str,
        url: str,
        lane: str | None,
        limit: int,
        patience: float | None,
        options: dict[str, Any],
    ) -> httpx2.Response:
        name = lane or host_lane(_host(url))
        async with self.exchange(method, url, name, options, patience) as response:
            whole = await _whole(response, url, limit)
            raise_for_status(whole, name)
            return whole

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        url: str,
        lane: str,
        options: dict[str, Any],
        patience: float | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Send one request under a permit; the response is still to be read. Errors until the end
        of the block are raised as what they mean.

        A 429 says that nothing was done: where there is `again`, that request waits for another
        permit and is made again, unless its body can be sent only once. RateLimited where that
        permit would come too late, or the lane's breaker has opened.
        """
        tries = RATE_LIMITED_TRIES if self._again and _repeatable(options) else 1
        lanes = self._lanes
        limited: RateLimited | None = None
        async with AsyncExitStack() as stack:
            for tries_left in reversed(range(tries)):
                asking = self._asking(method, url, lane, options, patience, lanes, tries_left > 0)
                try:
                    response = await stack.enter_async_context(asking)
                except RateLimited as error:
                    lanes, limited = self._again or lanes, error
                except LaneBusy as busy:
                    if limited is None:
                        raise
                    raise limited from busy
                else:
                    yield response
                    return

    @asynccontextmanager
    async def _asking(
        self,
        method: str,
        url: str,
        lane: str,
        options: dict[str, Any],
        patience: float | None,
        lanes: ProviderLanes,
        raises_429: bool,
    ) -> AsyncIterator[httpx2.Response]:
        import httpx2

        client = await self._client()  # before the permit
        self._check_time()
        asked = runtime.monotonic()
        came, bug = False, None
        async with lanes.request(lane, patience=patience):
            waited = runtime.monotonic() - asked
            try:
                left = max(MOMENT, self._left())
                with requesting(method, url, lane, waited) as span:
                    if _host(url) in self._trace_hosts:
                        options = naming(span, options)
                    async with (
                        asyncio.timeout(left),
                        client.stream(method, url, timeout=left, **options) as response,
                    ):
                        answered(span, response.status_code)
                        if response.status_code == 429 and raises_429:
                            raise_for_status(await _beginning(response, url), lane)
                        came = True
                        yield response
            except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, UnicodeError) as error:
                raise HttpError(f"{_shown(url)!r} cannot be requested: {error}", 0) from error
            except (httpx2.TransportError, TimeoutError) as error:
                raise self._unreachable(url, lane, error) from error
            except httpx2.RequestError as error:
                raise HttpError(f"{_shown(url)}: {error}", 0) from error
            except Exception as error:
                if not came or report_of(error) is not None:
                    raise
                bug = error  # of whoever reads the answer: it tells nothing of the lane
        if bug is not None:
            raise bug

    def _check_time(self) -> None:
        """Raise if no time is left. Not under a permit: our own deadline says nothing about the
        lane."""
        if self._left() <= 0:
            raise self._run.overdue()

    def _left(self) -> float:
        return self._run.left()

    def _unreachable(self, url: str, lane: str, error: Exception) -> Unavailable:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        said = f"{place}: {type(error).__name__}: {error}".rstrip(": ")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = f"{parts.hostname}:{port}" if self._probed else None
        return Unavailable(said, lane=lane, address=address)


def _hush() -> None:
    """Silence the library's INFO log, which contains full URLs with keys and queries, unless
    somebody has set the level of its logger."""
    logger = logging.getLogger("httpx2")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def host_lane(host: str) -> str:
    return f"host:{host}"


async def _parts(
    response: httpx2.Response, url: str, limit: int, silence: float | None = None
) -> AsyncGenerator[bytes, None]:
    """Iterate over the body up to `limit`, whatever its declared length."""
    body = response.aiter_bytes()
    size, patience = 0, None
    while True:
        try:
            async with asyncio.timeout(patience):
                part = await anext(body, None)
        except TimeoutError:
            raise TimeoutError(f"nothing for {patience:g} s") from None
        if part is None:
            return
        size, patience = size + len(part), silence
        if size > limit:
            raise HttpError(f"{_shown(url)}: body over {limit:,} bytes", response.status_code)
        yield part


async def _whole(response: httpx2.Response, url: str, limit: int) -> httpx2.Response:
    """Read the whole body of a response."""
    body = bytearray()
    async for part in _parts(response, url, limit):
        body += part
    return _read(response, body)


async def _beginning(response: httpx2.Response, url: str) -> httpx2.Response:
    """Read the part of the body that is reported with an error. The status is what matters: a body
    that is late or breaks off is not waited for."""
    import httpx2

    body = bytearray()
    with suppress(TimeoutError, httpx2.TransportError):
        async with (
            asyncio.timeout(TOLD_SECONDS),
            aclosing(_parts(response, url, BODY_LIMIT)) as parts,
        ):
            async for part in parts:
                body += part
                if len(body) >= TOLD_BYTES:
                    break
    return _read(response, body)


def _read(response: httpx2.Response, body: bytearray) -> httpx2.Response:
    headers = [  # the body is decoded now
        (name, value)
        for name, value in response.headers.multi_items()
        if name not in ("content-encoding", "content-length", "transfer-encoding")
    ]
    return type(response)(
        response.status_code, headers=headers, content=bytes(body), request=response.request
    )


def _repeatable(options: dict[str, Any]) -> bool:
    """Whether a request can be sent twice: a file or stream is consumed by the first attempt."""
    return all(_kept(options.get(name)) for name in ("content", "data", "files"))


def _kept(body: Any) -> bool:
    match body:
        case dict():
            return all(map(_kept, body.values()))
        case list() | tuple():
            return all(map(_kept, body))
        case _:
            return body is None or isinstance(body, str | bytes | int | float)


def _without_secrets(options: dict[str, Any]) -> dict[str, Any]:
    """Drop the headers that must not be sent to another host than the one the caller named."""
    kept = {name: value for name, value in options.items() if name not in ("auth", "cookies")}
    if "headers" in kept:
        kept["headers"] = {
            name: value
            for name, value in dict(kept["headers"]).items()
            if name.lower() not in SECRETS
        }
    return kept


def _shown(url: str) -> str:
    """Format a URL for an error: without its password."""
    scheme, slashes, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{place.rpartition('@')[2]}{slash}{path}"


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValidationError(f"{url!r} is no URL: {error}") from None
    if not host:
        raise ValidationError(f"{url!r} is no absolute URL")
    return host


def raise_for_status(response: httpx2.Response, lane: str, *, names_path: bool = True) -> None:
    """Raise the exception for a status of 400 or more. Unless `names_path`, its message has only
    the host: an untrusted URL may contain a secret."""
    status = response.status_code
    if status < 400:
        return
    url = response.request.url
    where = f"{_place(url) if names_path else url.host}: HTTP {status}"
    problem: RateLimited | Unavailable | AuthenticationError | HttpError
    if status == 429:
        problem = RateLimited(where, retry_after(response.headers.get("retry-after")))
        problem.resets_after = _resets_after(response)
    elif status >= 500:
        problem = Unavailable(where)
    elif status in (401, 403):
        problem = AuthenticationError(f"{where}: check the credentials")
    else:
        problem = HttpError(where, status)
    if not isinstance(problem, RateLimited):
        problem.status = status
    problem.lane, problem.response = lane, response
    problem.url = hidden(str(response.request.url))
    problem.headers = hidden(dict(response.headers))
    problem.body = _told(response)[:TOLD_BYTES]
    raise problem


def _place(url: httpx2.URL) -> str:
    """Format host, port and path: without password and parameters, which may be keys. A long part
    of the path, which may be a token, is truncated."""
    path = url.raw_path.decode("ascii", "replace").partition("?")[0].rstrip("/")
    path = LONG_PART.sub(r"\1...", path)
    if len(path) > PATH_LIMIT:
        path = path[:PATH_LIMIT] + "..."
    return url.netloc.decode("ascii", "replace") + path


def _told(response: httpx2.Response) -> str:
    """Return the beginning of the server's message, with secrets hidden, including those it was
    sent; '' if it was not read."""
    said = _said(response)
    asked = response.request
    for name, value in (*asked.headers.items(), *asked.url.params.items()):
        secret = value.rpartition(" ")[2]  # behind `Bearer`
        if secret and hidden({name: value}) != {name: value}:
            said = said.replace(secret, HIDDEN)
    return said


def _said(response: httpx2.Response) -> str:
    import httpx2

    try:
        content = response.content
    except httpx2.ResponseNotRead:
        return ""
    if len(content) <= PARSED_BYTES:
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            pass
        else:
            return json.dumps(hidden(value), ensure_ascii=False)
    text: str = hidden(content[: 2 * TOLD_BYTES].decode(response.encoding or "utf-8", "replace"))
    return text


def _resets_after(response: httpx2.Response) -> float | None:
    """Parse when the provider's quota resets, in seconds: some send a duration, some a time."""
    for name in RESET_HEADERS:
        value = response.headers.get(name, "").strip()
        if value.isdecimal() and len(value) < 15:
            told = float(value)
            seconds = told if told < EPOCHS else max(0.0, told - runtime.now())
            return min(seconds, LONGEST_RETRY_AFTER)
    return None
