"""Documents that are still to be fetched from a URL.

The URL may contain personal data or a secret (`?user=...`, `?token=...`), and the workers need it
unmasked. So it is stored in the blob store, as the document's original until that is fetched: the
row and the job name its blob. Everywhere else only the masked URL is stored, and the host, which
names the lane.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from penstock.adapters.blobs.address import BucketAddress, ObjectAddress, is_object, object_address
from penstock.documents.document_names import NAME_LIMIT, Names
from penstock.documents.jobs import FETCH, WEB, Enqueue, fetch_id, log_of, payload_of
from penstock.documents.pipeline import IngestDeps
from penstock.model.document import Document
from penstock.model.job import Job, Priority, PriorityName
from penstock.outbound.web_address import Allow, WebAddress, web_address
from penstock.ports.blobs import Blob, BlobStore
from penstock.ports.documents import Version

REQUEST_BYTES = 64 * 1024
PAGES = 1
"""Version of how web pages are read; increase it when the same bytes deserve a new attempt."""
_SECRET = re.compile(
    r"(?i)([?&](?:[^=&]*(?:passw|secret|token|signature|credential|session)[^=&]*"
    r"|(?:[^=&]*[-_.])?(?:api-?key|key|sig|auth|code|pass)))=[^&]*"
)
"""Query parameters whose name marks them as secret."""
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


class Request(NamedTuple):
    """A URL to fetch, and the given title."""

    url: str
    title: str
    endpoint: str | None = None
    """For an object in a bucket: a server other than Amazon's or Google's."""

    async def keep(self, blobs: BlobStore) -> Blob:
        # Without what is not said: processes of the version before read it, too.
        said = {name: value for name, value in self._asdict().items() if value is not None}
        return await blobs.put(_whole(json.dumps(said).encode()), most=REQUEST_BYTES)

    @classmethod
    def read(cls, path: Path) -> Request:
        return cls(**json.loads(path.read_bytes()))

    def object(self) -> ObjectAddress | None:
        """The object that the URL names, allowed when it was accepted; None for a web address."""
        if not is_object(self.url):
            return None
        scheme, _, path = self.url.partition("://")
        return object_address(
            self.url, [BucketAddress(scheme, path.split("/")[0], "", self.endpoint)]
        )


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def shown(address: WebAddress | ObjectAddress) -> str:
    """Format a URL without what looks like a secret."""
    return _SECRET.sub(r"\1=***", address.url)


def name_of(address: WebAddress | ObjectAddress) -> str:
    """Derive the default id of a document from its URL. A URL that is truncated or not shown in
    full gets a hash, so that ids stay unique."""
    name = shown(address)
    if name == address.url and len(name) <= NAME_LIMIT:
        return name
    mark = hashlib.sha256(address.url.encode()).hexdigest()[:8].translate(_LETTERS)
    return f"{name[: NAME_LIMIT - 9]}-{mark}"


def digest_of(
    content: str,
    title: str,
    source: str,
    metadata: Mapping[str, Any],
    fingerprint: str,
    charset: str,
) -> str:
    """Hash everything that determines the result of ingestion. `content` stands for the bytes."""
    decides: list[Any] = [content, title, source, metadata, fingerprint]
    if source.startswith(WEB):
        decides += [PAGES, charset]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True, frozen=True)
class Remote:
    """Dependencies of fetching documents."""

    tools: IngestDeps
    allow: Allow
    seconds: float
    """Time limit for all attempts."""
    now: Callable[[], float]
    """The queue's clock."""

    async def start(
        self,
        enqueue: Enqueue,
        document: Document,
        blob: str,
        priority: PriorityName | Priority = Priority.MEDIUM,
    ) -> Job:
        """Enqueue the fetch job of a document; idempotent. Raises BlobMissing if the URL is no
        longer known."""
        version = Version(document.ref, document.generation)
        tools = self.tools
        async with tools.blobs.local(blob) as path:
            request = Request.read(path)
        if (there := request.object()) is not None:
            host = f"{there.bucket.scheme}://{there.bucket.bucket}"
        else:
            name = web_address(request.url).host
            host = await tools.masked(lambda: Names(tools.mask).host(name))
        return await enqueue(
            FETCH,
            {**payload_of(version, blob), "host": host},
            job_id=fetch_id(version, blob),
            tenant=document.tenant,
            log=log_of(document.ref),
            deadline=self.now() + self.seconds,
            priority=priority,
        )
