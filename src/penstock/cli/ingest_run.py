"""One run of `penstock ingest`: accepts documents, runs the jobs, and follows them to the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.app import Penstock
from penstock.cli.errors import InputError
from penstock.cli.folders import Gone
from penstock.cli.ingest_view import Active, IngestTotals, View, failure_of
from penstock.cli.sources import IngestItem, file_id, is_address, parts_of
from penstock.cli.watch import POLL_SECONDS, looks
from penstock.documents.jobs import EMBED
from penstock.documents.pipeline import PARSED
from penstock.errors import (
    DocumentNotFound,
    PenstockError,
    QueueError,
    StoreUnavailable,
    ValidationError,
)
from penstock.model.document import Document, DocumentRef, DocumentState
from penstock.model.job import Job, JobState
from penstock.ports.queue import Topic

KINDS = "ingest.*"
PAGE = 1000
SHOWN = 50
"""Maximum documents in progress to show."""
IDLE_LOOKS = 4
"""Consecutive checks with queued jobs and none running, after which the reason is shown."""


@dataclass(slots=True, frozen=True)
class IngestOptions:
    """Options that apply to all documents of one command."""

    collection: str
    tenant: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    retry: bool = False
    """Retry documents that failed before."""

    @property
    def where(self) -> dict[str, Any]:
        return {"collection": self.collection, "tenant": self.tenant}


class Ingest:
    """One run. `stop` ends it early; accepted documents stay in the queue."""

    def __init__(
        self,
        app: Penstock,
        given: IngestOptions,
        view: View,
        tally: IngestTotals,
        stop: asyncio.Event,
    ) -> None:
        self._app = app
        self._given = given
        self._view = view
        self._tally = tally
        self._stop = stop
        self._pending: dict[DocumentRef, int] = {}
        """Generation of each unfinished document."""
        self._idle = 0

    async def accept(self, items: AsyncIterator[IngestItem | Gone]) -> None:
        """Accept everything. An unreadable item fails alone; errors of the queue or the store are
        raised, because they affect all."""
        async for item in items:
            if self._stop.is_set():
                return
            if isinstance(item, Gone):
                await self._delete(item.id)
                continue
            try:
                document = await self._add(item)
            except (QueueError, StoreUnavailable):
                raise
            except PenstockError as error:
                problem = failure_of(error)
                problem["message"] = self.masked(problem["message"])
                self._failed(self.name(item.id), problem)
                continue
            if document.state is DocumentState.COMPLETED:
                self._tally.unchanged += 1
                self._view.unchanged(document)
            elif document.state is DocumentState.FAILED:
                failed = document.error or failure_of(InputError(document.message))
                message = f"{failed['message']} (unchanged; retry with --retry)"
                self._failed(document.id, {**failed, "message": message})
            elif self._pending.get(document.ref) != document.generation:
                self._pending[document.ref] = document.generation
                self._tally.waiting = len(self._pending)
                self._view.accepted(document)

    async def _add(self, item: IngestItem) -> Document:
        documents, given = self._app.documents, self._given
        about: dict[str, Any] = {
            "id": item.id,
            "title": given.title or item.title,
            "metadata": given.metadata,
            **given.where,
        }
        match item.content:
            case str():
                return await documents.add_url(item.content, **about)
            case Path():
                about |= {"origin": item.origin, "retry": given.retry}
                return await documents.add(parts_of(item.content), **about)
            case bytes():
                about |= {"origin": item.origin, "retry": given.retry}
                return await documents.add(item.content, **about)

    async def _delete(self, name: str) -> None:
        documents, where = self._app.documents, self._given.where
        try:
            self._pending.pop(documents.ref(name, **where), None)  # before a look misses it
            await documents.delete(name, **where)
        except (DocumentNotFound, ValidationError):
            return  # somebody else was faster, or it never was one
        self._tally.deleted += 1
        self._view.deleted(name)

    def masked(self, text: str) -> str:
        return self._app.documents.masked(text)

    def name(self, item_id: str) -> str:
        """Name of a document once it is accepted."""
        try:
            return self._app.documents.ref(item_id, **self._given.where).id
        except ValidationError:
            return self.masked(item_id)  # it never will be

    async def known(self, folders: Sequence[str]) -> list[str]:
        """Documents that were ingested from files in these directories before, by id."""
        inside = [os.path.join(file_id(Path(folder)), "") for folder in folders]
        here = os.path.join(".", "")
        found: list[str] = []
        async for document in self._documents():
            name, source = document.id, document.source
            # A name that was masked ends in a mark that its source does not have.
            from_file = source and name.startswith(source) and not is_address(name)
            if from_file and any(
                name.startswith(folder) or (folder == here and not os.path.isabs(name))
                for folder in inside
            ):
                found.append(name)
        return found

    async def follow(self, accepting: asyncio.Task[None]) -> None:
        """Show progress until everything is accepted and finished, or `stop`."""
        listener = self._app.queue.listen(Topic.FINISHED)
        loop = asyncio.get_running_loop()
        try:
            async for took in looks(self._timed_look):
                if self._stop.is_set() or (accepting.done() and not self._pending):
                    return
                # With very many documents a look takes long: spend a fifth of the time on it.
                resume = loop.time() + 4 * took
                await listener.wait(POLL_SECONDS)
                await asyncio.sleep(max(0.0, resume - loop.time()))
        finally:
            listener.close()

    async def _timed_look(self) -> float:
        begun = asyncio.get_running_loop().time()
        await self.look()
        return asyncio.get_running_loop().time() - begun

    async def look(self) -> None:
        """Check what has finished, and show what is in progress."""
        asked = list(self._pending)
        processing: set[DocumentRef] = set()
        if asked:  # all that are under way in the collection, whoever accepted them
            processing = {one.ref async for one in self._documents([DocumentState.PROCESSING])}
        for ref in asked:
            if ref not in processing:
                await self._ended(ref)
        active, waits_for = await self._active() if self._pending else ([], "")
        self._tally.waiting = len(self._pending)
        self._view.progress(active, len(self._pending), waits_for)

    async def _documents(
        self, states: Sequence[DocumentState] | None = None
    ) -> AsyncIterator[Document]:
        before = None
        while True:
            page = await self._app.documents.documents(
                **self._given.where, states=states, limit=PAGE, before=before
            )
            for document in page:
                yield document
            if len(page) < PAGE:
                return
            before = page[-1].generation

    async def _ended(self, ref: DocumentRef) -> None:
        try:
            document = await self._app.documents.get(
                ref.id, collection=ref.collection, tenant=ref.tenant
            )
        except DocumentNotFound:
            if self._pending.pop(ref, None) is not None:  # else we have deleted it
                self._failed(ref.id, failure_of(InputError("it was deleted in the meantime")))
            return
        match document.state:
            case DocumentState.PROCESSING:
                return  # accepted once more, since the look
            case DocumentState.COMPLETED if document.generation < self._pending[ref]:
                # What was fetched is what is there.
                self._tally.unchanged += 1
                self._view.unchanged(document)
            case DocumentState.COMPLETED:
                self._tally.completed += 1
                self._tally.chunks += document.chunks
                self._tally.masked.update(document.masked)
                self._view.completed(document)
            case DocumentState.FAILED:
                self._failed(ref.id, document.error or failure_of(InputError(document.message)))
        self._pending.pop(ref, None)

    async def _active(self) -> tuple[list[Active], str]:
        """Return our running jobs; if there are none, what the others are waiting for."""
        running = await self._jobs(JobState.RUNNING, SHOWN)
        active = [_active(job) for job in running if self._is_ours(job)]
        if running:
            self._idle = 0
            return active, ""
        queued = await self._jobs(JobState.QUEUED, 1)
        self._idle = self._idle + 1 if queued else 0
        return [], str(queued[0].waiting_for) if self._idle >= IDLE_LOOKS else ""

    async def _jobs(self, state: JobState, limit: int) -> list[Job]:
        return await self._app.jobs(
            kind=KINDS, states=[state], tenant=self._given.tenant, limit=limit
        )

    def _is_ours(self, job: Job) -> bool:
        payload = job.payload
        return DocumentRef(job.tenant, payload["collection"], payload["document"]) in self._pending

    def _failed(self, name: str, error: Mapping[str, Any]) -> None:
        self._tally.failures.append((name, error))
        self._view.failed(name, error)


def _active(job: Job) -> Active:
    stage = job.kind.rpartition(".")[2]
    begins_at = PARSED if job.kind == EMBED else 0.0
    return Active(job.payload["document"], stage, max(begins_at, job.progress), job.message)
