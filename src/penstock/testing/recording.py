"""The queue of a simulated process, which tells the reference model what the process does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.adapters.sqlite.member import SqliteMember
from penstock.model.job import Job
from penstock.ports.lanes import Returned
from penstock.ports.queue import Exchange, Inbox, Lease, NewJobs, Progress, Settlement, Want
from penstock.testing.loop import current
from penstock.testing.machine import Machine, SimulatedQueue
from penstock.testing.model import ReferenceModel


class RecordingQueue(SimulatedQueue):
    def __init__(self, machine: Machine, model: ReferenceModel, **options: Any) -> None:
        super().__init__(machine, **options)
        self.model = model

    async def enqueue(self, batch: NewJobs, conn: Any = None) -> list[Job]:
        jobs = await super().enqueue(batch, conn)
        self.model.accept(jobs)
        return jobs

    async def join(
        self,
        kinds: Sequence[str],
        max_workers: int,
        lease_seconds: float,
        inbox: Inbox | None = None,
    ) -> RecordingMember:
        member = RecordingMember(self, kinds, max_workers, lease_seconds, inbox)
        member.model = self.model
        await member.join()
        self.model.join(member.id)
        return member


class RecordingMember(SqliteMember):
    model: ReferenceModel

    async def join(self) -> None:
        await super().join()
        self._marks: dict[int, Lease] = {}

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        progress: Sequence[Progress],
        want: Want | None,
        returned: Sequence[Returned] = (),
    ) -> Exchange:
        self.model.send(self.id, settlements, current.get())
        done = await super().exchange(settlements, progress, want, returned)
        if want is not None and want.looks and not done.leases:
            self.model.ask(self.id, current.get())
        return done

    def mark_started(self, lease: Lease) -> int:
        self.model.begin(lease, current.get())
        slot = super().mark_started(lease)
        self.model.mark(lease)
        self._marks[slot] = lease
        return slot

    def clear_started(self, slot: int) -> None:
        super().clear_started(slot)
        self.model.unmark(self._marks.pop(slot))

    async def leave(self) -> None:
        self.model.leave(self.id)
        await super().leave()
