"""Readers of scanned pages: tesseract or a model, as configured.

The children that do it are not those that parse: a page takes seconds, and documents that are text
do not wait for it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Protocol

from penstock.adapters.models.vision import VisionModel
from penstock.documents.parse.draft import clean
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.pool import ParserPool
from penstock.documents.parse.requests import Parsing
from penstock.engine.context import JobContext
from penstock.errors import ConfigError
from penstock.model.llm import LlmConfig
from penstock.model.service_settings import DocumentsConfig

MAX_PAGES = 500
"""Maximum pages of a document; each takes seconds, or money."""
LANE = "llm.ingest"


class ScanReader(Protocol):
    name: str
    """Name of the reader: part of what determines the result."""
    lane: str | None
    """Lane of the job."""
    pool: ParserPool

    def check(self) -> None:
        """Raise ConfigError if this machine cannot do it."""
        ...

    async def read(self, ctx: JobContext, path: Path, page: int) -> str:
        """Read the text of a page, not masked; '' if there is none."""
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
        """Read a page. The image stays in memory, from the child that renders it to the request."""
        post = partial(ctx.http.post, record="page text")
        png = await parser_for(ctx, self.pool).picture(path, page)
        return clean(await self._model.read(png, post, self._most)).strip()


def parser_for(ctx: JobContext, pool: ParserPool) -> Parsing:
    """Return the parsers for a job, which waits for its tenant's turn without a worker, and without
    spending its timeout."""
    return pool.asked_by(ctx.tenant, partial(ctx.parked, timed=False))


def scan_reader(
    settings: DocumentsConfig, llm: LlmConfig, limits: ParseLimits
) -> ScanReader | None:
    """Return the configured reader; None if scans are not read."""
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
