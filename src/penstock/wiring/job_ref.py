"""A job that a handle has enqueued, whose result has the type its handler returns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.engine.results import Read
    from penstock.model.event import JobEvent
    from penstock.model.job import Job

R_co = TypeVar("R_co", covariant=True)


class JobRef(Generic[R_co]):
    """A job that was enqueued by a handle: its id, and what can be asked of it."""

    __slots__ = ("_app", "_read", "id")

    def __init__(self, app: Penstock, job_id: str, read: Read) -> None:
        self.id = job_id
        self._app = app
        self._read = read

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the job and return its result, as the type that the handler is annotated to
        return. Raises JobFailed, JobCancelled and WaitTimeout as `Penstock.result` does, and
        ValidationError if what is stored is no such type."""
        result: R_co = self._read(await self._app.result(self.id, timeout))
        return result

    async def wait(self, timeout: float | None = None) -> Job:
        """Wait until the job has ended, however it has, and return it; WaitTimeout after `timeout`
        seconds."""
        return await self._app.wait(self.id, timeout)

    async def get(self) -> Job:
        """The job as it is now. Raises JobNotFound."""
        return await self._app.get(self.id)

    async def cancel(self) -> Job:
        """Cancel the job and its children that are not detached; see `Penstock.cancel`."""
        return await self._app.cancel(self.id)

    def follow(self, *, after: int | None = None) -> AsyncIterator[JobEvent]:
        """`async for event in ref.follow(): ...`: what happens in it; see `Penstock.follow`."""
        return self._app.follow(self.id, after=after)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobRef) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"JobRef({self.id!r})"
