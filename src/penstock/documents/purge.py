"""Deletes vectors of deleted texts and of replaced models."""

from __future__ import annotations

import logging
import time
from typing import Any

from penstock.ports.documents import DocumentStore

log = logging.getLogger("penstock.ingest")

STEP_SECONDS = 10.0
STEP = 1000
"""Vectors checked at a time, in some milliseconds: one process checks 100,000 in a quarter of an
hour."""


class Purge:
    """Runs in every process that ingests; safe to run concurrently."""

    def __init__(self, documents: DocumentStore, keep_seconds: float) -> None:
        self._documents = documents
        self._keep_seconds = keep_seconds
        self._after: tuple[Any, ...] | None = None
        self._next_at = 0.0

    async def __call__(self) -> None:
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + STEP_SECONDS
        step = await self._documents.purge(
            after=self._after, keep_seconds=self._keep_seconds, limit=STEP
        )
        self._after = step.after
        if step.deleted:
            log.info("deleted %d unused vectors", step.deleted)
