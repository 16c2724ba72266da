"""The records of one run's job, which its steps, waits, events and receipts share."""

from __future__ import annotations

import asyncio

from penstock.engine.run import Interrupt, Run
from penstock.engine.step_recorder import StepRecorder
from penstock.errors import EventLimit, LeaseLost, StepLimit, SuspensionSwallowed
from penstock.model.payload import byte_length
from penstock.model.step import EVENT_LIMIT
from penstock.ports.steps import EVENT_NAME, StepRow, large_result


class RunRecords:
    """Loads what earlier runs have recorded, writes what this one does, and counts both."""

    def __init__(self, run: Run, version: str, recorder: StepRecorder) -> None:
        self.run = run
        self.version = version
        self.recorder = recorder
        self.known: dict[str, StepRow] = {}
        """What is stored of steps, waits and events, by key."""
        self.receipts: list[StepRow] = []
        """Receipts of earlier runs, until they are looked through."""
        self.writing = 0
        """Receipts that are being written."""
        self.keys: set[str] = set()
        """Keys of the steps that are stored or under way: what counts toward `max_steps`."""
        self._events: set[str] = set()
        """The same of emitted events, which have a limit of their own."""
        self._bytes = 0
        # The first claim of a job has token 1. Nobody can have recorded anything before it.
        self._loaded = run.lease.token == 1
        self._loading: asyncio.Task[None] | None = None

    async def ready(self, name: str) -> None:
        """Load what earlier runs have recorded. An error where this run cannot record any more."""
        run = self.run
        if run.suspended is not None:
            raise SuspensionSwallowed
        if run.ended is not None or run.interrupted is Interrupt.LEASE_LOST:
            raise LeaseLost(run.lease.id, name)  # before it is paid for
        if not self._loaded:  # once for all that wait for it
            if self._loading is None:
                self._loading = asyncio.create_task(self._load(name), name="penstock-load-steps")
            await asyncio.shield(self._loading)

    async def _load(self, name: str) -> None:
        run = self.run
        try:
            rows = await self.recorder.load(run)
            old = [row.key for row in rows if row.version != self.version]
            if old and not await run.member.drop_steps(run.lease, old):
                raise LeaseLost(run.lease.id, name)
            rows = [row for row in rows if row.version == self.version]
            self.known = {row.key: row for row in rows if row.details is None}
            self.receipts = [row for row in rows if row.details is not None]
            self._events = {row.key for row in rows if row.name == EVENT_NAME}
            self.keys.update({row.key for row in rows} - self._events)
            self._bytes = sum(map(_size, rows))
            self._loaded = True
        finally:
            self._loading = None

    def count(self, key: str, name: str) -> None:
        """A step, wait or event begins; StepLimit or EventLimit if it would be one too many."""
        if name == EVENT_NAME:
            if key not in self._events and len(self._events) >= EVENT_LIMIT:
                raise EventLimit(f"a job emits at most {EVENT_LIMIT:,} events")
            self._events.add(key)
        else:
            self.check_room(key, f"step {name!r}")
            self.keys.add(key)

    def check_room(self, key: str, what: str) -> None:
        """StepLimit if it would be one record too many."""
        limit = self.recorder.settings.max_steps
        if key not in self.keys and len(self.keys) >= limit:
            raise StepLimit(
                f"{what} is one too many: a job records at most {limit:,} steps "
                "(setting max_steps); let child jobs do a part of the work"
            )

    def add_bytes(self, size: int) -> bool:
        """Whether there is room for so much more; then it is taken."""
        room = self._bytes + size <= self.recorder.settings.max_steps_bytes
        self._bytes += size if room else 0
        return room

    def check_bytes(self, what: str, size: int) -> None:
        """StepLimit if so many bytes would be too much; else they count."""
        if not self.add_bytes(size):
            most = self.recorder.settings.max_steps_bytes
            raise StepLimit(
                f"{what}: the results of all steps of a job take at most {most:,} "
                "bytes (setting max_steps_bytes); store them elsewhere and return references"
            )

    def note(self, row: StepRow) -> None:
        """It was stored."""
        self.known[row.key] = row
        (self._events if row.name == EVENT_NAME else self.keys).add(row.key)

    async def write(self, row: StepRow) -> None:
        """Store a row; LeaseLost if that is not possible any more. Waits count as steps do."""
        self.count(row.key, row.name)
        if not await self.recorder.write(self.run, row):
            raise LeaseLost(self.run.lease.id, row.name)
        self.note(row)


def _size(row: StepRow) -> int:
    if row.result is None:
        return 0
    large = large_result(row.result)
    return byte_length(row.result) if large is None else large.size
