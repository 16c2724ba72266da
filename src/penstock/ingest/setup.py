"""What an app needs for documents, put together from its settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.adapters.blobs.local import LocalBlobs
from penstock.engine.waiters import LogWaiters
from penstock.ingest import reembed
from penstock.ingest.chunk import ChunkSettings
from penstock.ingest.embedding import Embedding
from penstock.ingest.jobs import Enqueue
from penstock.ingest.library import Library
from penstock.ingest.mask import Masker
from penstock.ingest.parse.limits import ParseLimits
from penstock.ingest.parse.pool import ParserPool
from penstock.ingest.pipeline import Tools, register
from penstock.ingest.purge import Purge
from penstock.model.embedder import EmbedderConfig
from penstock.model.errors import ConfigError
from penstock.model.settings import Settings
from penstock.ports.queue import JobQueue

Register = Callable[..., Callable[[Any], Any]]


def open_library(
    queue: JobQueue,
    settings: Settings,
    embedder: EmbedderConfig,
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
    limits = ParseLimits(input_bytes=settings.document_bytes)
    parser = ParserPool(settings.parsers, limits)
    tools = Tools(
        corpus=corpus,
        blobs=LocalBlobs(Path(settings.blobs).expanduser() if settings.blobs else folder),
        parser=parser,
        mask=Masker(),
        chunk=chunk,
        embedding=embedding.in_job,
        model=embedding.model,
        keep_originals=settings.keep_originals,
    )
    register(tools, job)
    reembed.register(tools, job)
    # What decides, beside the bytes, what becomes of a document: when it changes, the same bytes
    # are worth another look.
    fingerprint = json.dumps([1, settings.chunk_tokens, settings.chunk_overlap, embedding.model])
    most_bytes, purge = settings.document_bytes, Purge(corpus, settings.unused_vectors_seconds)
    return Library(tools, queue, enqueue, logs, embedding, most_bytes, fingerprint, purge)


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
