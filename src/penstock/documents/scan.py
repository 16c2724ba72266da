"""`ingest.scan`: reads scanned pages one after another, in a separate job.

Each page that was read is kept, masked: that is the checkpoint. A rerun reads only what is missing,
so a long document takes several runs, and no page is paid for twice. When none is missing, what was
read takes its place among the pages that had text, and the whole goes the way of every document.
A page's picture is never in a file: it goes from the child that draws it through a pipe.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from penstock.documents.jobs import SCAN
from penstock.documents.mask import Masker
from penstock.documents.parsed import Parsed
from penstock.documents.pipeline import PARSED, IngestDeps, IngestRun, Result
from penstock.documents.scan_readers import ScanReader, parser_for
from penstock.engine.context import JobContext
from penstock.errors import ModelError, ParserError
from penstock.model.document import DocumentRef
from penstock.ports.documents import ScannedPage, Version

TIMEOUT_SECONDS = 600.0
"""Minimum timeout of one run. Pages start only in its first half, so each has at least the other
half, which is enough for it and for parsing and chunking the document."""
CONTEXT = 500
"""Characters before a page that help to identify a number at its top."""
GAP = "\n\n"


def register(
    tools: IngestDeps, reader: ScanReader, job: Callable[..., Callable[[Any], Any]]
) -> None:
    """Register the job with an app."""

    timeout = max(TIMEOUT_SECONDS, 2 * 3 * reader.pool.longest_seconds)

    @job(SCAN, lane=reader.lane, timeout=timeout, max_per_process=reader.pool.worth_having)
    async def scan(
        ctx: JobContext, collection: str, document: str, generation: int, blob: str
    ) -> Result:
        version = Version(DocumentRef(ctx.job.tenant, collection, document), generation)
        work = IngestRun(tools, ctx, version, blob)
        return await work.do("scan", 0.0, lambda: _scan(work, reader))


async def _scan(work: IngestRun, reader: ScanReader) -> Result | None:
    documents, ctx, version = work.tools.documents, work.ctx, work.version
    given, began = ctx.remaining(), False
    basis = f"{work.blob[:64]} by {reader.name}"
    known = await documents.scanned(version, basis)
    document = await documents.get(version.ref)
    if known is None or document is None:
        return None
    async with work.original() as path:
        parser = parser_for(ctx, reader.pool)
        parsed = await parser.parse(path)
        for done, page in enumerate(parsed.scans):
            if page in known:
                continue
            if began and ctx.remaining() < given / 2:
                ctx.run_later(0.0, f"{done} of {len(parsed.scans)} pages read")
            began = True
            try:
                with ctx.stage("scan"):
                    text = await reader.read(ctx, path, page)
            except (ParserError, ModelError) as error:
                raise _of_page(error, page) from error
            before = _before(parsed, known, page)
            known[page] = await asyncio.to_thread(mask_page, work.tools.mask, before, text)
            if not await documents.put_scan(version, basis, page, known[page]):
                return None
            fraction = (done + 1) / len(parsed.scans)
            ctx.progress(PARSED * fraction, f"{done + 1} of {len(parsed.scans)} pages read")
        whole = await parser.parse(path, {page: known[page].text for page in parsed.scans})
    counts = Counter[str]()
    for page in parsed.scans:
        counts.update(known[page].masked)
    return await work.stage(whole, document.title, counts)


def _of_page(error: ParserError | ModelError, page: int) -> ParserError | ModelError:
    if isinstance(error, ParserError):
        return ParserError(f"page {page}: {error.message}", error.reason)
    return ModelError(f"page {page}: {error}")


def _before(parsed: Parsed, known: Mapping[int, ScannedPage], page: int) -> str:
    """Return the end of the previous page, however it was read."""
    if page == 1:
        return ""
    if page - 1 in known:
        return known[page - 1].text[-CONTEXT:]
    before = parsed.pages[page - 2]
    return parsed.text[before.start : before.end].rstrip()[-CONTEXT:]


def mask_page(mask: Masker, before: str, text: str) -> ScannedPage:
    """Mask a page, with the text before it as context."""
    lead = before + GAP
    masked = mask(lead + text)
    own = Counter(masked.counts) - Counter(mask(lead).counts)
    return ScannedPage(masked.text[masked.position(len(lead)) :], dict(own))
