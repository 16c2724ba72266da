"""What a process and all its children use: memory, looked at again and again, and time."""

from __future__ import annotations

import statistics
import threading
import time
from types import TracebackType
from typing import Self

import psutil

LOOK_SECONDS = 0.1


def processor_seconds(pid: int) -> float:
    """That a process and all below it have used so far, also those that have ended."""
    total = 0.0
    process = psutil.Process(pid)
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:  # a child that has just ended
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Memory:
    """Looks for as long as the block lasts. Pages that processes share count once for each."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.seen: list[tuple[float, float]] = []
        """Seconds, megabytes."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def peak(self) -> float:
        return max(megabytes for _, megabytes in self.seen)

    @property
    def growth(self) -> float:
        """Megabytes a minute over the second half: the first has what grows once."""
        half = self.seen[len(self.seen) // 2 :]
        if len(half) < 2:
            return 0.0
        times, sizes = zip(*half, strict=True)
        return 60 * statistics.linear_regression(times, sizes).slope

    def _look(self) -> None:
        start = time.monotonic()
        while True:
            total = 0
            for process in (self._process, *self._process.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:  # a child that has just ended
                    continue
            self.seen.append((time.monotonic() - start, total / 1_000_000))
            if self._over.wait(LOOK_SECONDS):
                return
