"""Outcomes on their way to the queue. Nothing is dropped until the queue has answered."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.engine.run import Run
from penstock.model.settings import Settings
from penstock.ports.queue import Progress, Returned, Settlement


class Settler:
    """Gathers settlements and progress for the dispatcher's next trip."""

    def __init__(self, settings: Settings, wake: Callable[[], None]) -> None:
        self._settings = settings
        self._wake = wake
        self._pending: list[tuple[Settlement, Run | None]] = []
        self._progress: dict[int, Progress] = {}
        self._returned: list[Returned] = []
        self._progress_at = 0.0
        self._since = 0.0

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, settlement: Settlement, run: Run | None) -> None:
        """`run` is None for a job that was never started."""
        if not self._pending:
            self._since = time.monotonic()
        self._pending.append((settlement, run))
        self._wake()

    def oldest_age(self) -> float:
        """Seconds the first outcome has waited; -1 when there is none."""
        return time.monotonic() - self._since if self._pending else -1.0

    def note(self, run: Run, fraction: float, message: str) -> None:
        """Progress of a running job; the last word before each trip counts."""
        if run.interrupted is None:
            self._progress[run.lease.seq] = Progress(run.lease, fraction, message)
            self._wake()

    def give_back(self, returned: Returned) -> None:
        """A permit taken inside a job is no longer needed."""
        self._returned.append(returned)
        self._wake()

    def take_returned(self) -> list[Returned]:
        returned, self._returned = self._returned, []
        return returned

    def put_back_returned(self, returned: list[Returned]) -> None:
        self._returned[:0] = returned

    @property
    def has_returned(self) -> bool:
        return bool(self._returned)

    def take(self) -> list[tuple[Settlement, Run | None]]:
        pending, self._pending = self._pending, []
        return pending

    def take_progress(self) -> list[Progress]:
        """What is due: progress is stored at most every `progress_seconds`."""
        if not self._progress or self.progress_due_in() > 0:
            return []
        self._progress_at = time.monotonic()
        notes, self._progress = list(self._progress.values()), {}
        return notes

    def progress_due_in(self) -> float:
        """Seconds until waiting progress may be stored; infinite when there is none."""
        if not self._progress:
            return float("inf")
        return self._progress_at + self._settings.progress_seconds - time.monotonic()

    def put_back(self, taken: list[tuple[Settlement, Run | None]]) -> None:
        """The trip failed: these go with the next one, in their order."""
        self._pending[:0] = taken

    @staticmethod
    def stored(taken: list[tuple[Settlement, Run | None]]) -> None:
        """The queue has answered for these: a crash from here on does not concern them."""
        for _, run in taken:
            if run is not None:
                run.member.clear_started(run.slot)

    def forget(self) -> None:
        """The leases are lost; what was gathered under them is void."""
        self._pending.clear()
        self._progress.clear()
        self._returned.clear()
