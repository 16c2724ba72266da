"""Finds the blob store for results of steps: the one that `blobs` names, or beside the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock.adapters.blobs.address import bucket_address, is_address
from penstock.adapters.blobs.bucket import BucketBlobs
from penstock.adapters.blobs.local import LocalBlobs
from penstock.adapters.sqlite.file import SqliteFile
from penstock.engine.step_results import StepResults
from penstock.ports.blobs import BlobStore
from penstock.ports.queue import JobQueue

PLACE = "steps"
"""Apart from documents: each of the two deletes what it does not know."""


def step_results(queue: JobQueue, blobs: str) -> StepResults | None:
    """None where no blob store is shared by the processes of this queue."""
    store = _store(queue, blobs)
    return None if store is None else StepResults(store, queue)


def _store(queue: JobQueue, blobs: str) -> BlobStore | None:
    if is_address(blobs):
        address = bucket_address(blobs)
        return BucketBlobs(replace(address, prefix=f"{address.prefix}{PLACE}/"))
    if blobs:
        return LocalBlobs(Path(blobs).expanduser() / PLACE)
    if isinstance(queue, SqliteFile):
        return LocalBlobs(queue.path.with_name(queue.path.name + "-blobs") / PLACE)
    return None
