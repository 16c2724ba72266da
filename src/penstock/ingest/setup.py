"""What an app needs for documents, put together from its settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.adapters.blobs.local import LocalBlobs
from penstock.engine.waiters import LogWaiters
from penstock.ingest import reembed, scan
from penstock.ingest.chunk import ChunkSettings
from penstock.ingest.embedding import Embedding
from penstock.ingest.jobs import Enqueue
from penstock.ingest.library import Library
from penstock.ingest.mask import Masker
from penstock.ingest.parse.limits import ParseLimits
from penstock.ingest.parse.pool import ParserPool
from penstock.ingest.pipeline import Tools, register
from penstock.ingest.scan_readers import MOST_PAGES, scan_reader
from penstock.model.embedder import EmbedderConfig
from penstock.model.errors import ConfigError
from penstock.model.llm import LlmConfig
from penstock.model.settings import Settings
from penstock.ports.queue import JobQueue

Register = Callable[..., Callable[[Any], Any]]


def open_library(
    queue: JobQueue,
    settings: Settings,
    embedder: EmbedderConfig,
    llm: LlmConfig,
    job: Register,
    enqueue: Enqueue,
    logs: LogWaiters,
) -> Library:
    """The library of an app; registers the jobs that serve it."""
    corpus, folder = _store(queue, settings)
    embedding = Embedding(embedder)
    overlap = settings.chunk_overlap
    slack = max(4, overlap // 4)
    chunk = ChunkSettings(size=settings.chunk_tokens, overlap=overlap, slack=slack)
    scans = 0 if settings.scans == "none" else MOST_PAGES
    limits = ParseLimits(input_bytes=settings.document_bytes, scans=scans)
    parser, reader = ParserPool(settings.parsers, limits), scan_reader(settings, llm, limits)
    tools = Tools(
        corpus=corpus,
        blobs=LocalBlobs(Path(settings.blobs).expanduser() if settings.blobs else folder),
        parser=parser,
        scan_reader=reader,
        mask=Masker(),
        chunk=chunk,
        embedding=embedding.in_job,
        model=embedding.model,
        keep_originals=settings.keep_originals,
    )
    register(tools, job)
    reembed.register(tools, job)
    if reader is not None:
        scan.register(tools, reader, job)
    # What decides, beside the bytes, what becomes of a document: when it changes, the same bytes
    # are worth another look.
    decides: list[Any] = [1, settings.chunk_tokens, settings.chunk_overlap, embedding.model]
    if reader is not None:
        decides.append(reader.name)
    fingerprint = json.dumps(decides)
    return Library(tools, queue, enqueue, logs, embedding, settings.document_bytes, fingerprint)


def _store(queue: JobQueue, settings: Settings) -> tuple[Any, Path]:
    """The corpus, and where its blobs are unless said otherwise."""
    from penstock.adapters.sqlite.corpus import SqliteCorpus
    from penstock.adapters.sqlite.file import SqliteFile

    url = settings.store
    if (url or queue.url).startswith(("postgresql:", "postgres:")):
        return _postgres_store(queue, settings)
    if not url and isinstance(queue, SqliteFile):
        file: SqliteFile = queue
        shared = True
    elif url.startswith("sqlite:"):
        file, shared = SqliteFile(url, durable=settings.durable), False
    else:
        raise ConfigError(
            "documents need a store: set `store: sqlite:///corpus.db` or `store: postgresql://...` "
            "(Redis does not hold them)"
        )
    folder = file.path.with_name(file.path.name + "-blobs")
    return SqliteCorpus(file, shared=shared), folder


def _postgres_store(queue: JobQueue, settings: Settings) -> tuple[Any, Path]:
    try:
        from penstock.adapters.postgres import PostgresQueue
        from penstock.adapters.postgres.address import parse
        from penstock.adapters.postgres.corpus import PostgresCorpus
        from penstock.adapters.postgres.database import Database
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise ConfigError("PostgreSQL stores need: pip install 'penstock[postgres]'") from None
    if not settings.blobs:
        raise ConfigError(
            "documents in PostgreSQL need `blobs`, a folder for original files that all worker "
            "processes reach"
        )
    folder = Path(settings.blobs).expanduser()
    if isinstance(queue, PostgresQueue) and (
        not settings.store or parse(settings.store) == queue.database.address
    ):
        return PostgresCorpus(queue.database, queue.pool), folder
    database = Database(parse(settings.store), poll_only=settings.poll_only)
    return PostgresCorpus(database), folder
