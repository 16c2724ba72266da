"""The queue of a simulated process, which tells the reference model what the process does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.adapters.queue import Joining
from penstock.adapters.sqlite.member import SqliteMember
from penstock.model.job import Job
from penstock.ports.lanes import Returned
from penstock.ports.queue import Exchange, Lease, NewJobs, Progress, Settlement, Want
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

    def new_member(self, joining: Joining) -> RecordingMember:
        return RecordingMember(self, joining)


class RecordingMember(SqliteMember):
    def __init__(self, queue: RecordingQueue, joining: Joining) -> None:
        super().__init__(queue, joining)
        self.model = queue.model
        self._marks: dict[int, Lease] = {}

    async def join(self) -> None:
        await super().join()
        self.model.join(self.id)

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
