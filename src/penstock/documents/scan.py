"""Scanned pages: who reads them, and the job that does.

Each page that was read is kept, masked: that is the checkpoint. A rerun reads only what is missing,
so a long document takes several runs, and no page is paid for twice. When none is missing, what was
read takes its place among the pages that had text, and the whole goes the way of every document.
A page's picture is never in a file: it goes from the child that draws it through a pipe.

The children that do it are not those that parse: a page takes seconds, and documents that are text
do not wait for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from penstock.adapters.models.vision import VisionModel
from penstock.documents.jobs import SCAN
from penstock.documents.mask import Masker
from penstock.documents.parse.draft import clean
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.pool import ParserPool
from penstock.documents.parse.requests import Parsing
from penstock.documents.parsed import Parsed
from penstock.documents.pipeline import PARSED, IngestDeps, IngestRun, Result
from penstock.engine.context import JobContext
from penstock.errors import ConfigError, ModelError, ParserError
from penstock.model.document import DocumentRef
from penstock.model.llm import LlmConfig
from penstock.model.settings import DocumentsConfig
from penstock.ports.documents import ScannedPage, Version

MAX_PAGES = 500
"""Of a document; each takes seconds, or money."""
LANE = "llm.ingest"


class ScanReader(Protocol):
    name: str
    """Of what reads: it is part of what becomes of a document."""
    lane: str | None
    """Of the job."""
    pool: ParserPool

    def check(self) -> None:
        """ConfigError where this machine cannot do it."""
        ...

    async def read(self, ctx: JobContext, path: Path, page: int) -> str:
        """What stands on a page, not masked; '' for nothing."""
        ...


class OcrReader:
    lane: str | None = None

    def __init__(self, pool: ParserPool, languages: str) -> None:
        self.name = f"tesseract {languages}"
        self.pool = pool
        self._languages = languages

    def check(self) -> None:
        from penstock.documents.parse.ocr import check  # here: it brings the parsers along

        check(self._languages)

    async def read(self, ctx: JobContext, path: Path, page: int) -> str:
        return await parser_for(ctx, self.pool).ocr(path, page, self._languages)


class ModelReader:
    lane: str | None = LANE

    def __init__(self, pool: ParserPool, model: VisionModel, most: int) -> None:
        self.name = f"model {model.model}"
        self.pool = pool
        self._model = model
        self._most = most

    def check(self) -> None:
        self._model.check()

    async def read(self, ctx: JobContext, path: Path, page: int) -> str:
        """The picture is in memory only, from the child that draws it to the request."""
        png = await parser_for(ctx, self.pool).picture(path, page)
        return clean(await self._model.read(png, ctx.http.post, self._most)).strip()


def parser_for(ctx: JobContext, pool: ParserPool) -> Parsing:
    """The parsers, for a job: it waits for its tenant's turn without a worker, and without
    spending its timeout."""
    return pool.asked_by(ctx.tenant, partial(ctx.parked, timed=False))


def scan_reader(
    settings: DocumentsConfig, llm: LlmConfig, limits: ParseLimits
) -> ScanReader | None:
    """None where pictures are not read."""
    if settings.scans == "none":
        return None
    pool = ParserPool(settings.parsers, limits)
    if settings.scans == "ocr":
        return OcrReader(pool, settings.ocr_languages)
    config = llm.model("ingest")
    if config is None:
        raise ConfigError(
            "`scans: model` needs a model: "
            "`llm: {base_url: http://localhost:8080/v1, models: {ingest: NAME}}`"
        )
    return ModelReader(pool, VisionModel(config), limits.page_characters)


TIMEOUT_SECONDS = 600.0
"""Of one run, at least. A page begins in its first half only, so each has the other half at least,
which is enough for it, and to parse and to cut the whole."""
CONTEXT = 500
"""Characters before a page that tell what a number at its top may be."""
GAP = "\n\n"


def register(
    tools: IngestDeps, reader: ScanReader, job: Callable[..., Callable[[Any], Any]]
) -> None:
    """Let an app do the job."""

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
    """The end of the page before, whoever has read it."""
    if page == 1:
        return ""
    if page - 1 in known:
        return known[page - 1].text[-CONTEXT:]
    before = parsed.pages[page - 2]
    return parsed.text[before.start : before.end].rstrip()[-CONTEXT:]


def mask_page(mask: Masker, before: str, text: str) -> ScannedPage:
    """A page masked in the light of what stands before it."""
    lead = before + GAP
    masked = mask(lead + text)
    own = Counter(masked.counts) - Counter(mask(lead).counts)
    return ScannedPage(masked.text[masked.position(len(lead)) :], dict(own))
