"""Processes a message: its request is stored, or it becomes a dead letter."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from traceback import format_tb
from typing import TYPE_CHECKING

from penstock.adapters.blobs.address import BucketAddress, bucket_address
from penstock.adapters.blobs.services import require
from penstock.api.queue_depth import LOOK_SECONDS, Depth
from penstock.api.tenant_view import TenantView
from penstock.errors import (
    ConfigError,
    DocumentNotFound,
    KeyConflict,
    LogStopped,
    PermanentError,
    QueueUnavailable,
    QueueUnusable,
    StoreUnavailable,
    Unavailable,
)
from penstock.intake.idempotency import once
from penstock.intake.partition import Left
from penstock.intake.record import MessageRecord, MessageRefused, identity, position
from penstock.intake.requests import (
    DeleteRequest,
    DocumentRequest,
    IngestRequest,
    JobRequest,
    Request,
    SearchRequest,
    read,
)
from penstock.model.ids import new_id
from penstock.model.intake import KafkaConfig

if TYPE_CHECKING:
    from penstock.app import Penstock

log = logging.getLogger("penstock.intake")

TENANT_LIMIT = 240
UNEXPECTED = 3
"""Attempts at a message that fails with an unexpected error."""
DEGRADED = 3
"""Consecutive failures of one message after which it is logged."""


@dataclass(slots=True)
class MessageCounts:
    """Counts of messages, by result."""

    stored: int = 0
    duplicates: int = 0
    """Processed before."""
    dead_letters: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class Receiver:
    """Stores the requests of messages. Create it before the app is opened: it adds the services
    that it needs."""

    def __init__(
        self,
        app: Penstock,
        config: KafkaConfig,
        origin: Callable[[MessageRecord], Awaitable[str]],
        bury: Callable[[MessageRecord, MessageRefused, str], Awaitable[None]],
    ) -> None:
        """`origin` gives the cluster and topic of a message, by ids that are never reused; `bury`
        publishes one to the dead-letter topic, and returns once it is stored there. Both raise
        Unavailable where Kafka cannot be reached."""
        self._app = app
        self._config = config
        self._origin = origin
        self._publish_dead = bury
        self._depth = Depth(app, config.max_queued)
        self._full = False
        self._buckets = [bucket_address(one, "intake.kafka.buckets") for one in config.buckets]
        for bucket in self._buckets:
            require(bucket)
        self.tally = MessageCounts()
        if set(config.accept) - {"job"}:
            app.use("research", "keys")

    async def receive(self, record: MessageRecord, ending: asyncio.Event) -> None:
        """Process a message; returns once it need not be read again. Retries for ever while
        something is unreachable; ConfigError and QueueUnusable need a person. Raises Left if its
        line ends while it waits for room in the queue."""
        holder, unexpected, wait = new_id(), 0, Wait(record)
        pause = self._app.config.engine.reconnect_first_seconds
        while True:
            try:
                await self._receive(record, holder, ending)
            except (QueueUnavailable, StoreUnavailable, Unavailable, OSError) as error:
                wait.failed(error)
            except (ConfigError, QueueUnusable, Left):
                raise
            except Exception as error:
                # Without its message, which may quote a document.
                where = "".join(format_tb(error.__traceback__))
                log.error("%s in %s:\n%s", type(error).__name__, record.place, where)
                unexpected += 1
                if unexpected == UNEXPECTED:
                    await self._bury_at_last(record, error, wait)
                    return
            else:
                wait.over()
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._app.config.engine.reconnect_cap_seconds)

    async def _receive(self, record: MessageRecord, holder: str, ending: asyncio.Event) -> None:
        origin = await self._origin(record)
        try:
            request = read(record, self._config.accept, self._config.message_bytes)
            tenant = self._tenant(record)
            key = identity(record, origin)
            await self._room(tenant, ending)
            first = await self._store(request, tenant, key, record, holder)
        except MessageRefused as refused:
            await self._bury(record, refused, origin)
            return
        if first:
            self.tally.stored += 1
        else:
            self.tally.duplicates += 1

    def _tenant(self, record: MessageRecord) -> str:
        header = self._config.tenant_header
        named = None if header is None else record.text_header(header, TENANT_LIMIT)
        return named or self._config.tenant

    async def _room(self, tenant: str, ending: asyncio.Event) -> None:
        """Wait while the queue is full. Meanwhile the partition's line fills up and is paused."""
        while await self._depth.full(tenant) is not None:
            if ending.is_set():
                raise Left
            if not self._full:
                log.warning("%d jobs are queued: not reading messages", self._depth.queued)
                self._full = True
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), LOOK_SECONDS)
        if self._full:
            log.info("the queue has room again")
            self._full = False

    async def _store(
        self, request: Request, tenant: str, key: str, record: MessageRecord, holder: str
    ) -> bool:
        """Store a request; returns whether it was new. Raises MessageRefused if a service rejects
        it."""
        tenant_view = TenantView(self._app, tenant)
        if isinstance(request, JobRequest):
            return await _enqueue(tenant_view, request, key, holder)

        async def make(made: str) -> None:
            try:
                await _carry_out(tenant_view, request, made, self._buckets)
            except (PermanentError, LogStopped) as error:
                raise MessageRefused("refused", str(error)) from error

        return await once(self._app.keys.store, tenant, key, record.digest(), holder, make)

    async def _bury(self, record: MessageRecord, refused: MessageRefused, origin: str) -> None:
        try:
            key = identity(record, origin)
        except MessageRefused:  # its message-id is what is wrong with it
            key = position(record, origin)
        await self._publish_dead(record, refused, key)
        self.tally.dead_letters += 1
        # Not the detail: it may quote the message, which may hold personal data.
        log.warning("%s was sent to the dead-letter topic: %s", record.place, refused.reason)

    async def _bury_at_last(self, record: MessageRecord, error: Exception, wait: Wait) -> None:
        refused = MessageRefused("failed", f"{type(error).__name__} each time it was tried")
        while True:
            try:
                await self._bury(record, refused, await self._origin(record))
            except Unavailable as why:
                wait.failed(why)
                await asyncio.sleep(self._app.config.engine.reconnect_cap_seconds)
            else:
                return wait.over()


class Wait:
    """Logs why a message cannot be stored, once that lasts. One per message: progress in other
    partitions must not hide that this one is stuck."""

    def __init__(self, record: MessageRecord) -> None:
        self._place = record.place
        self._failures = 0

    def failed(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == DEGRADED:
            log.warning("degraded, %s waits and is tried again: %s", self._place, error)

    def over(self) -> None:
        if self._failures >= DEGRADED:
            log.info("%s waits no more", self._place)


async def _enqueue(tenant_view: TenantView, request: JobRequest, key: str, holder: str) -> bool:
    try:
        job = await tenant_view.enqueue(
            request.job,
            request.payload,
            key=f"kafka:{key}",
            job_id=holder,
            log=request.log,
            priority=request.priority,
        )
    except KeyConflict:
        raise MessageRefused(
            "key-reused", "the message-id was already used with different content"
        ) from None
    except (PermanentError, LogStopped) as error:
        raise MessageRefused("refused", str(error)) from error
    return job.id == holder


async def _carry_out(
    tenant_view: TenantView,
    request: DocumentRequest | IngestRequest | DeleteRequest | SearchRequest,
    made: str,
    buckets: Sequence[BucketAddress],
) -> None:
    """Execute a request. `made` is the id of what it creates, the same in every attempt."""
    tenant = tenant_view.tenant
    match request:
        case DocumentRequest():
            said = request.model_dump(include={"title", "collection", "metadata", "priority"})
            if request.url is not None:
                await tenant_view.documents.add_url(
                    request.url, id=request.id, tenant=tenant, buckets=buckets, **said
                )
            else:
                assert request.text is not None
                await tenant_view.documents.add(request.text, id=request.id, tenant=tenant, **said)
        case IngestRequest():
            # What was accepted already, whoever's it is: all that it can ask for is to begin.
            said = request.model_dump(exclude={"kind"})
            if not await tenant_view.documents.begin(**said):
                log.info("a document was replaced, deleted or done with before its message came")
        case DeleteRequest():
            try:
                await tenant_view.documents.delete(
                    request.id, collection=request.collection, tenant=tenant
                )
            except DocumentNotFound:
                log.info("there is no document to delete")  # which one may be personal
        case SearchRequest():
            queries = request.queries or [request.question]
            tenant_view.research.check_searches(queries, request.max_results, request.providers)
            task = await tenant_view.research.create(
                request.question,
                budget_pages=request.budget_pages,
                budget_seconds=request.budget_seconds,
                task_id=made,
                tenant=tenant,
            )
            await tenant_view.research.queue_searches(
                task.id,
                queries,
                max_results=request.max_results,
                priority=request.priority,
                providers=request.providers,
                tenant=tenant,
            )
