"""`ctx.http`: an HTTP client that observes lanes and deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from penstock import runtime
from penstock.errors import (
    HttpError,
    LaneBusy,
    PenstockError,
    RateLimited,
    Unavailable,
    ValidationError,
)
from penstock.lanes.reports import report_of
from penstock.model.amounts import AmountValue
from penstock.outbound.recorded import SECRETS, answer_of, place_of, request_of, response_of
from penstock.outbound.responses import (
    BODY_LIMIT,
    body_parts,
    raise_for_status,
    read_beginning,
    read_whole,
    without_password,
)
from penstock.outbound.spans import answered, naming, requesting
from penstock.ports.bill import Bill
from penstock.ports.lanes import ErrorReports
from penstock.ports.receipts import NoReceipt, OpenReceipts, Receipt, ReceiptRequest

if TYPE_CHECKING:
    import httpx2

    from penstock.outbound.guard import GuardedClient
    from penstock.ports.provider import ProviderLanes

READ_TRIES = 3
"""Attempts at an idempotent read within one run, each with its own permit."""
READ_PAUSE = 0.2
RATE_LIMITED_TRIES = 8
"""Attempts at a request that gets 429, within one run. By then the lane is at its slowest, if the
request was alone in it."""
MOMENT = 0.001
HOPS = 10
REDIRECTS = (301, 302, 303, 307, 308)
BRIEF = (502, 503, 504)


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


class _Request(NamedTuple):
    """A request, however often it is made."""

    method: str
    url: str
    lane: str | None
    max_bytes: int
    patience: float | None
    options: dict[str, Any]
    bill: Bill | None


class JobHttp:
    """One job's requests.

    Each takes a permit: in `lane` if given, else in the job's own lane, else in the lane of
    the host. The job's first request in its own lane uses the permit it was started with.
    Errors are raised as what they mean: Unavailable, RateLimited, AuthenticationError, or
    HttpError for other 4xx, which is not retried. With `again` a request that is answered 429 is
    made again under a permit of that, up to RATE_LIMITED_TRIES times in all.

    With `record=True` the answer is recorded with the job: where it is run again after a kill or a
    release, an equal request takes it from there, without a permit. What is recorded is the answer
    as it came, but for cookies and what else looks like credentials in its headers. With a text
    nothing is taken: the receipt says that the answer is kept there.
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
        receipts: OpenReceipts | None = None,
    ) -> None:
        self._client = client
        self._run = run
        self._lanes = lanes
        self._again = again
        self._receipts = receipts
        self._trace_hosts = trace_hosts
        """Hosts that receive the trace context."""
        self._probed = probed
        """Whether unreachable addresses may be probed: a probe resolves names again, unguarded."""

    @property
    def reports(self) -> ErrorReports:
        """Lane reports about its errors."""
        return self._lanes.reports

    def get(self, url: str, **options: Any) -> Coroutine[Any, Any, httpx2.Response]:
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> Coroutine[Any, Any, httpx2.Response]:
        return self.request("POST", url, **options)

    def request(
        self,
        method: str,
        url: str,
        *,
        lane: str | None = None,
        max_bytes: int = BODY_LIMIT,
        patience: float | None = None,
        record: bool | str = False,
        amount: AmountValue | Bill | None = None,
        **options: Any,
    ) -> Coroutine[Any, Any, httpx2.Response]:
        """Send a request and read the response. Reads are retried briefly, writes never. Waits for
        each permit until the deadline, or for `patience` seconds; then raises LaneBusy. `record`:
        leave a receipt, or take the answer from it; a text says where the caller stores the answer,
        and the receipt only refers to that. `amount` is what it uses at most of what its
        lane counts; what it has used is read from `usage` in the answer, where it is JSON."""
        method, bill = method.upper(), Bill.of(amount, _model(options))
        request = _Request(method, url, lane, max_bytes, patience, options, bill)
        if not record or self._receipts is None:
            return self._request(request)
        asked = request_of(method, url, self._lane_of(url, lane), options)
        if isinstance(record, str):
            return _referred(self.receipt(replace(asked, kept=record)), self._request(request))
        return self._recorded(self.receipt(asked), request)

    def receipt(self, asked: ReceiptRequest) -> Receipt:
        """That of one call; where there is no job, none."""
        return NoReceipt() if self._receipts is None else self._receipts().begin(asked)

    def _lane_of(self, url: str, lane: str | None) -> str:
        return lane or self._run.lane or host_lane(_host(url))

    async def _recorded(self, receipt: Receipt, request: _Request) -> httpx2.Response:
        known = await receipt.found()
        if known is not None:
            return response_of(known, request.method, request.url)
        response = await self._request(request)
        if response.is_success:
            await receipt.keep(answer_of(response, request.url, request.options))
        return response

    async def _request(self, request: _Request) -> httpx2.Response:
        tries = READ_TRIES if request.method in ("GET", "HEAD") else 1
        for attempt in range(1, tries + 1):
            try:
                return await self._follow(request)
            except Unavailable as error:
                brief = error.status in (None, *BRIEF) and not isinstance(error, RateLimited)
                pause = READ_PAUSE * attempt
                if attempt == tries or not brief or self._run.left() <= pause:
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
        amount: AmountValue | Bill | None = None,
        **options: Any,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream the body, under one permit that is held until the block ends. Nothing is retried,
        and redirects are not followed. Raises Unavailable if the stream breaks off, or is silent
        for `silence` seconds once it has started. A `Bill` as `amount` is told by the caller what
        it has used."""
        name = self._lane_of(url, lane)
        bill = Bill.of(amount)
        if bill is None and self._lanes.counts(name):
            bill = Bill()
        async with self.exchange(method, url, name, options, patience, bill) as response:
            if response.status_code >= 400:
                raise_for_status(await read_beginning(response, url), name)
            if response.status_code >= 300:
                status = response.status_code
                raise HttpError(f"{without_password(url)}: HTTP {status} is not followed", status)
            async with aclosing(body_parts(response, url, max_bytes, silence)) as parts:
                yield parts

    async def _follow(self, request: _Request) -> httpx2.Response:
        """Follow redirects, each hop with a permit in the lane of its host."""
        method, url, lane, limit, patience, options, bill = request
        first_host = _host(url)
        lane = lane or self._run.lane or None
        for _ in range(HOPS):
            here = (lane if _host(url) == first_host else None) or host_lane(_host(url))
            told = Bill(model=_model(options)) if bill is None else bill
            async with self.exchange(method, url, here, options, patience, told) as coming:
                response = await read_whole(coming, url, limit)
                if bill or _is_json(response) or self._lanes.counts(here):
                    told.read(response.content)
                raise_for_status(response, here)
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
        raise HttpError(f"{without_password(url)}: more than {HOPS} redirects", 0)

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        url: str,
        lane: str,
        options: dict[str, Any],
        patience: float | None = None,
        bill: Bill | None = None,
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
                last = tries_left == 0
                asking = self._asking(method, url, lane, options, patience, lanes, not last, bill)
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
        bill: Bill | None,
    ) -> AsyncIterator[httpx2.Response]:
        import httpx2

        client = await self._client()  # before the permit
        if (
            self._run.left() <= 0
        ):  # not under one: that our own time is over is not the lane's fault
            raise self._run.overdue()
        asked = runtime.monotonic()
        came, bug = False, None
        async with lanes.request(lane, patience=patience, bill=bill):
            waited = runtime.monotonic() - asked
            try:
                left = max(MOMENT, self._run.left())
                with requesting(method, url, lane, waited) as span:
                    if _host(url) in self._trace_hosts:
                        options = naming(span, options)
                    async with (
                        asyncio.timeout(left),
                        client.stream(method, url, timeout=left, **options) as response,
                    ):
                        answered(span, response.status_code)
                        if bill is not None:
                            bill.headers = response.headers
                        if response.status_code == 429 and bill is not None:
                            bill.nothing()
                        if response.status_code == 429 and raises_429:
                            raise_for_status(await read_beginning(response, url), lane)
                        came = True
                        yield response
            except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, UnicodeError) as error:
                raise HttpError(
                    f"{without_password(url)!r} cannot be requested: {error}", 0
                ) from error
            except (httpx2.TransportError, TimeoutError) as error:
                if bill is not None and isinstance(error, httpx2.ConnectError):
                    bill.nothing()
                raise self._unreachable(url, lane, error) from error
            except httpx2.RequestError as error:
                raise HttpError(f"{without_password(url)}: {error}", 0) from error
            except Exception as error:
                if not came or report_of(error) is not None:
                    raise
                bug = error  # of whoever reads the answer: it tells nothing of the lane
        if bug is not None:
            raise bug

    def _unreachable(self, url: str, lane: str, error: Exception) -> Unavailable:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        said = f"{place}: {type(error).__name__}: {error}".rstrip(": ")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = f"{parts.hostname}:{port}" if self._probed else None
        return Unavailable(said, lane=lane, address=address)


async def _referred(receipt: Receipt, asking: Awaitable[httpx2.Response]) -> httpx2.Response:
    response = await asking
    if response.is_success:
        await receipt.refer(place_of(response))
    return response


def _is_json(response: httpx2.Response) -> bool:
    return "json" in response.headers.get("content-type", "")


def _model(options: dict[str, Any]) -> str:
    """The model that a request asks, as those to models name it."""
    body = options.get("json")
    model = body.get("model") if isinstance(body, dict) else None
    return model if isinstance(model, str) else ""


def host_lane(host: str) -> str:
    return f"host:{host}"


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


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValidationError(f"{url!r} is no URL: {error}") from None
    if not host:
        raise ValidationError(f"{url!r} is no absolute URL")
    return host
