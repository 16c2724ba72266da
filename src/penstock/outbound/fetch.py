"""`ctx.fetch`: fetches untrusted URLs. See `web_address` and `guard`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from penstock.errors import AuthenticationError, DocumentTooLarge, FetchError, HttpError
from penstock.outbound.http import REDIRECTS, JobHttp, host_lane
from penstock.outbound.responses import raise_for_status, without_password
from penstock.outbound.web_address import Allow, WebAddress, check, web_address
from penstock.ports.receipts import ReceiptAnswer, ReceiptRequest

if TYPE_CHECKING:
    import httpx2

HOPS = 5
BROUGHT = (200, 203)
CODINGS = ("", "identity", "gzip", "deflate")
"""Supported encodings, one at a time: compressed twice, a few bytes can take hours to
decompress."""
HEADERS = {"accept": "*/*", "accept-encoding": "gzip, deflate"}
NAME_LIMIT = 200


@dataclass(slots=True, frozen=True)
class Fetched:
    """A response whose body is still to be read. Its headers are untrusted."""

    url: str
    """The final URL, after redirects."""
    mime: str
    charset: str
    name: str
    """File name: as the server declares it, else the last part of the URL, else the host."""
    parts: AsyncIterator[bytes]


class JobFetch:
    """One job's fetches. Each hop has a permit in the lane of its host. Raises AddressRefused,
    FetchError, DocumentTooLarge, or Unavailable and RateLimited, which are tried again."""

    def __init__(self, http: JobHttp, allow: Allow, agent: str) -> None:
        self._http = http
        self._allow = allow
        self._headers = {**HEADERS, "user-agent": agent}

    @asynccontextmanager
    async def __call__(
        self,
        url: str,
        *,
        most: int,
        lane_of: Callable[[str], Awaitable[str]] | None = None,
        before: Callable[[WebAddress], Awaitable[None]] | None = None,
        record: str = "",
    ) -> AsyncIterator[Fetched]:
        """Fetch at most `most` bytes, compressed and decompressed, within the time of the job.
        `lane_of` names the lane of a host, if not `host:` and its name. `before` is awaited before
        every hop, and raises if it must not be made. `record`: leave a receipt when the block has
        ended, which says that the answer is kept there."""
        options: dict[str, Any] = {"headers": self._headers, "most_bytes": most}
        address = web_address(url)
        for _ in range(HOPS + 1):
            check(address, self._allow)
            if before is not None:
                await before(address)
            lane = host_lane(address.host) if lane_of is None else await lane_of(address.host)
            receipt = self._http.receipt(_asked(lane, address, record)) if record else None
            try:
                async with self._http.exchange("GET", address.url, lane, options) as response:
                    target = response.headers.get("location")
                    if response.status_code not in REDIRECTS or not target:
                        _check_answer(response, lane, most)
                        status = response.status_code
                        yield _fetched(response, address, most)
                        break
            except HttpError as error:
                failure = _failure(address, error)
                self._http.reports.pass_on(error, failure)
                raise failure from error
            address = address.joined(target)
        else:
            raise FetchError(f"{address.host}: more than {HOPS} redirects", 0)
        if receipt is not None:
            await receipt.refer(ReceiptAnswer({}, parameters={"status": status}))


def _asked(lane: str, address: WebAddress, record: str) -> ReceiptRequest:
    """Only the lane is shown of it: a host may be personal data."""
    asked = ["GET", without_password(address.url)]
    return ReceiptRequest(lane, asked, None, {"method": "GET"}, kept=record)


def _check_answer(response: httpx2.Response, lane: str, most: int) -> None:
    status, host = response.status_code, response.request.url.host
    try:
        raise_for_status(response, lane, names_path=False)
    except AuthenticationError:
        # No credentials were sent: it is not for us, and stays so.
        raise FetchError(f"{host}: HTTP {status}: it is not open to everybody", status) from None
    if status not in BROUGHT:
        raise FetchError(f"{host}: HTTP {status}: that brings no document", status)
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in CODINGS:
        raise FetchError(f"{host}: the answer is packed in a way that was not asked for", status)
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise DocumentTooLarge(f"over {most:,} bytes")


def _failure(address: WebAddress, error: HttpError) -> FetchError:
    """Rebuild the error without the full URL, which may contain a secret."""
    if isinstance(error, FetchError):
        return error
    what = f"HTTP {error.status}" if error.status else "its answer cannot be read"
    return FetchError(f"{address.host}: {what}", error.status)


def _fetched(response: httpx2.Response, address: WebAddress, most: int) -> Fetched:
    said = Message()
    for name in ("content-type", "content-disposition"):
        if name in response.headers:
            said[name] = response.headers[name]
    charset = said.get_content_charset("")
    path = unquote(urlsplit(address.url).path.rstrip("/"))
    name = (said.get_filename() or path or address.host).rpartition("/")[2]
    return Fetched(
        url=address.url,
        mime=said.get_content_type() if "content-type" in said else "",
        charset=charset,
        name="".join(filter(str.isprintable, name))[:NAME_LIMIT],
        parts=_parts(response, most),
    )


async def _parts(response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > most:
            raise DocumentTooLarge(f"over {most:,} bytes")
        yield part
