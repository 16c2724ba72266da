"""Downloads a URL into the blob store, in a job.

Everything reported about it is masked: host names, redirects and file names are chosen by the
server, and may be personal data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from penstock.adapters.blobs.address import ObjectAddress
from penstock.documents.document_names import Names
from penstock.documents.jobs import BUCKET_LANE
from penstock.documents.mask import Masker
from penstock.documents.pipeline import IngestDeps
from penstock.engine.context import JobContext
from penstock.errors import (
    BlobMissing,
    FetchError,
    HttpError,
    ParserError,
    PenstockError,
    RateLimited,
    StoreUnavailable,
    Unavailable,
)
from penstock.outbound.fetch import Fetched
from penstock.outbound.http import host_lane
from penstock.outbound.web_address import WebAddress
from penstock.ports.blobs import Blob

MEGABYTE = 1_000_000
NEVER_READ = ("audio", "video", "font")
"""Content types that are rejected before the download. For others the content decides."""

Before = Callable[[WebAddress], Awaitable[None]]
"""See `JobFetch`."""


class Brought(NamedTuple):
    blob: Blob
    url: str
    """The final URL, after redirects; not masked."""
    name: str
    mime: str
    charset: str


async def bring(
    tools: IngestDeps, ctx: JobContext, url: str, *, most: int, before: Before | None = None
) -> Brought:
    """Download a URL. Raises what `ctx.fetch` raises; ParserError if the content type is not a
    document; Unavailable if the blob store is down."""
    names = Names(tools.mask)

    async def lane_of(host: str) -> str:
        return await lane_of_host(tools, host)

    with tools.blaming_blobs():
        try:
            async with ctx.fetch(
                url, most=most, lane_of=lane_of, before=before, record="document"
            ) as fetched:
                _check_type(fetched)
                stored = await tools.blobs.put(_noted(ctx, fetched.parts), most=most)
        except PenstockError as error:
            problem = error
            raise await tools.masked(lambda: masked_error(problem, tools.mask)) from None
    said = (fetched.name, fetched.mime, fetched.charset)
    name, mime, charset = await tools.masked(lambda: [names.text(one) for one in said])
    return Brought(stored, fetched.url, name, mime, charset)


async def bring_object(
    tools: IngestDeps, ctx: JobContext, address: ObjectAddress, *, most: int
) -> Brought:
    """Copy an object from a bucket, in a job of that bucket's lane. Raises FetchError if it is
    missing or not readable, DocumentTooLarge, Unavailable."""
    with tools.blaming_blobs():
        stored = await tools.blobs.put(_noted(ctx, _content(tools, address)), most=most)
    name = address.name.rpartition("/")[2]
    name = await tools.masked(lambda: Names(tools.mask).text(name))
    return Brought(stored, address.url, name, "", "")


async def _content(tools: IngestDeps, address: ObjectAddress) -> AsyncIterator[bytes]:
    bucket = address.bucket.bucket
    try:
        async for piece in tools.objects.content(address):
            yield piece
    except BlobMissing:
        raise FetchError(f"{bucket}: there is no such object", 404) from None
    except PermissionError:
        said = f"{bucket}: the object is not there, or may not be read with these credentials"
        raise FetchError(said, 403) from None
    except StoreUnavailable as error:
        lane = f"{BUCKET_LANE}{bucket}"
        raise Unavailable(str(error), lane=lane, address=error.address) from error


async def lane_of_host(tools: IngestDeps, host: str) -> str:
    """Return the lane of a host, masked, because a host can be personal data."""
    return host_lane(await tools.masked(lambda: Names(tools.mask).host(host)))


def _check_type(fetched: Fetched) -> None:
    if fetched.mime.partition("/")[0] in NEVER_READ:
        raise ParserError(f"{fetched.mime} is not a supported format", "unknown")


async def _noted(ctx: JobContext, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Iterate over the parts, and report how many there were."""
    size = 0
    async for part in parts:
        yield part
        size += len(part)
        ctx.progress(0.0, f"{size / MEGABYTE:.1f} MB")


def masked_error(error: PenstockError, mask: Masker) -> PenstockError:
    """Return the same error, for the lane and the engine, with a masked message."""
    said = mask(str(error)).text
    if isinstance(error, HttpError | RateLimited | ParserError):
        error.message = said
    elif type(error).__str__ is Exception.__str__:
        error.args = (said,)
    return error
