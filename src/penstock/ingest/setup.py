"""What an app needs for documents, put together from its settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.adapters.blobs.address import bucket_address, is_address
from penstock.adapters.blobs.bucket import BucketBlobs
from penstock.adapters.blobs.local import LocalBlobs
from penstock.engine.waiters import LogWaiters
from penstock.ingest import reembed
from penstock.ingest.chunk import ChunkSettings
from penstock.ingest.embedding import Embedding
from penstock.ingest.jobs import BLOBS_LANE, Enqueue
from penstock.ingest.library import Library
from penstock.ingest.mask import Masker
from penstock.ingest.parse.limits import ParseLimits
from penstock.ingest.parse.pool import ParserPool
from penstock.ingest.pii.presidio import PresidioNames
from penstock.ingest.pipeline import Tools, register
from penstock.model.embedder import EmbedderConfig
from penstock.model.errors import ConfigError
from penstock.model.names import NamesConfig
from penstock.model.settings import Settings
from penstock.ports.blobs import BlobStore
from penstock.ports.queue import JobQueue

Register = Callable[..., Callable[[Any], Any]]


def open_library(
    queue: JobQueue,
    settings: Settings,
    embedder: EmbedderConfig,
    names: NamesConfig | None,
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
        blobs=_blobs(settings, folder),
        blobs_lane=BLOBS_LANE if is_address(settings.blobs) else None,
        parser=parser,
        mask=_masker(names),
        chunk=chunk,
        embedding=embedding.in_job,
        model=embedding.model,
        keep_originals=settings.keep_originals,
    )
    register(tools, job)
    reembed.register(tools, job)
    # What decides, beside the bytes, what becomes of a document: when it changes, the same bytes
    # are worth another look.
    decides: list[Any] = [1, settings.chunk_tokens, settings.chunk_overlap, embedding.model]
    if names is not None:
        decides.append([dict(names.models), sorted(names.kinds), dict(names.labels)])
    fingerprint = json.dumps(decides, sort_keys=True)
    return Library(tools, queue, enqueue, logs, embedding, settings.document_bytes, fingerprint)


def _masker(names: NamesConfig | None) -> Masker:
    return Masker() if names is None else Masker(names.labels, [PresidioNames(names)])


def _blobs(settings: Settings, folder: Path | None) -> BlobStore:
    if is_address(settings.blobs):
        return BucketBlobs(bucket_address(settings.blobs))
    if settings.blobs:
        folder = Path(settings.blobs).expanduser()
    if folder is None:
        raise ConfigError(
            "documents in PostgreSQL need `blobs`, a folder for original files that all worker "
            "processes reach, or a bucket: s3://bucket/prefix, gs://bucket/prefix"
        )
    return LocalBlobs(folder)


def _store(queue: JobQueue, settings: Settings) -> tuple[Any, Path | None]:
    """The corpus, and where its blobs are unless said otherwise."""
    from penstock.adapters.sqlite.corpus import SqliteCorpus
    from penstock.adapters.sqlite.file import SqliteFile

    url = settings.store
    if (url or queue.url).startswith(("postgresql:", "postgres:")):
        return _postgres_store(queue, settings), None
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


def _postgres_store(queue: JobQueue, settings: Settings) -> Any:
    try:
        from penstock.adapters.postgres import PostgresQueue
        from penstock.adapters.postgres.address import parse
        from penstock.adapters.postgres.corpus import PostgresCorpus
        from penstock.adapters.postgres.database import Database
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise ConfigError("PostgreSQL stores need: pip install 'penstock[postgres]'") from None
    if isinstance(queue, PostgresQueue) and (
        not settings.store or parse(settings.store) == queue.database.address
    ):
        return PostgresCorpus(queue.database, queue.pool)
    database = Database(parse(settings.store), poll_only=settings.poll_only)
    return PostgresCorpus(database)
