"""Builds the documents service of an app from its settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.adapters.blobs.address import bucket_address, is_address
from penstock.adapters.blobs.bucket import BucketBlobs
from penstock.adapters.blobs.local import LocalBlobs
from penstock.adapters.models.offline_embedder import OfflineEmbedder
from penstock.adapters.sql.store import Store
from penstock.config import Config
from penstock.documents import fetch, reembed, scan
from penstock.documents.addresses import Remote
from penstock.documents.chunk import ChunkSettings
from penstock.documents.embedding import Embedding
from penstock.documents.fetch import Fetching
from penstock.documents.jobs import BLOBS_LANE, Enqueue
from penstock.documents.mask import Masker
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.pool import ParserPool
from penstock.documents.pii.presidio import PresidioNames
from penstock.documents.pipeline import IngestDeps, register
from penstock.documents.reconcile import PASSED_ON_SECONDS
from penstock.documents.reembed import Purge
from penstock.documents.scan_readers import MAX_PAGES, scan_reader
from penstock.documents.service import Documents
from penstock.engine.scope_provider import RequestScopes
from penstock.engine.waiters import LogWaiters
from penstock.errors import ConfigError
from penstock.model.name_masking import NamesConfig
from penstock.outbound.web_address import parse_allow
from penstock.ports.blobs import BlobStore
from penstock.ports.queue import JobQueue
from penstock.retrieval.relevance import OFFLINE_FLOOR, OFFLINE_SIMILARITY, Cutoff

Register = Callable[..., Callable[[Any], Any]]


def build_documents(
    queue: JobQueue,
    store: Store,
    config: Config,
    job: Register,
    enqueue: Enqueue,
    logs: LogWaiters,
    scopes: RequestScopes,
) -> Documents:
    """Build the documents service of an app and register its jobs."""
    settings, names = config.documents, config.names
    embedding = Embedding(config.embedder, scopes, settings.question_seconds)
    overlap = settings.chunk_overlap
    slack = max(4, overlap // 4)
    chunk = ChunkSettings(size=settings.chunk_tokens, overlap=overlap, slack=slack)
    scans = 0 if settings.scans == "none" else MAX_PAGES
    limits = ParseLimits(
        input_bytes=settings.document_bytes, scans=scans, seconds=settings.parse_seconds
    )
    parser = ParserPool(settings.parsers, limits)
    reader = scan_reader(settings, config.llm, limits)
    tools = IngestDeps(
        documents=store.documents(),
        blobs=_blobs(config.blobs, store.blobs),
        blobs_lane=BLOBS_LANE if is_address(config.blobs) else None,
        parser=parser,
        scan_reader=reader,
        mask=_masker(names),
        chunk=chunk,
        embedding=embedding.in_job,
        model=embedding.model,
        keep_originals=settings.keep_originals,
    )
    register(tools, config.engine.job_timeout, job)
    reembed.register(tools, job)
    if reader is not None:
        scan.register(tools, reader, job)
    # What decides, beside the bytes, what becomes of a document: when it changes, the same bytes
    # are worth another look. The number is that of the rules of reading and masking.
    decides: list[Any] = [3, settings.chunk_tokens, settings.chunk_overlap, embedding.model]
    if names is not None:
        decides.append([dict(names.models), sorted(names.kinds), dict(names.labels)])
    if reader is not None:
        decides.append(reader.name)
    fingerprint = json.dumps(decides, sort_keys=True)
    most = settings.document_bytes
    fetch.register(Fetching(tools, enqueue, most, fingerprint), job)
    remote = Remote(
        tools=tools,
        allow=parse_allow(config.outbound.fetch_allow),
        seconds=settings.fetch_seconds,
        now=queue.now,
    )
    purge = Purge(tools.documents, settings.unused_vectors_seconds)
    # Others give documents their jobs then (see `Documents.hand_over`), and are waited for.
    passed_on = config.intake.kafka.produce is not None
    patience = PASSED_ON_SECONDS if passed_on else 0.0

    def cutoff(model: str) -> Cutoff:
        similarity, floor = settings.search_min_similarity or None, None
        if model == OfflineEmbedder.model:
            similarity, floor = similarity or OFFLINE_SIMILARITY, OFFLINE_FLOOR
        return Cutoff(settings.search_min_coverage, similarity, floor)

    return Documents(
        tools, queue, enqueue, logs, embedding, remote, most, fingerprint, purge, patience, cutoff
    )


def _masker(names: NamesConfig | None) -> Masker:
    return Masker() if names is None else Masker(names.labels, [PresidioNames(names)])


def _blobs(place: str, folder: Path | None) -> BlobStore:
    if is_address(place):
        return BucketBlobs(bucket_address(place))
    if place:
        folder = Path(place).expanduser()
    if folder is None:
        raise ConfigError(
            "documents in PostgreSQL need `blobs`, a folder for original files that all worker "
            "processes reach, or a bucket: s3://bucket/prefix, gs://bucket/prefix"
        )
    return LocalBlobs(folder)
