"""A file in which handlers note that they ran, whatever becomes of the process or the queue."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from penstock import JobContext


class Note(NamedTuple):
    """One run of one job."""

    job: str
    attempt: int
    pid: int
    worker: str
    """WORKER in the process's environment, where a pid does not tell."""
    kind: str
    data: Any
    at: float
    token: int


class Side:
    """Appends whole lines with O_APPEND, so that processes do not overwrite each other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, ctx: JobContext, data: Any = None) -> None:
        """Called first thing by a handler."""
        job, worker, now = ctx.job, os.environ.get("WORKER", ""), time.time()
        note = Note(job.id, ctx.attempt, os.getpid(), worker, job.kind, data, now, ctx.token)
        line = json.dumps(note).encode() + b"\n"
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            assert os.write(fd, line) == len(line)
        finally:
            os.close(fd)

    def notes(self, job: str | None = None, kind: str | None = None) -> list[Note]:
        """Every run so far (of that job, of that kind), in order."""
        if not self.path.exists():
            return []
        text = self.path.read_text()
        whole = text[: text.rfind("\n") + 1]  # a line may be in the writing
        notes = [Note(*json.loads(line)) for line in whole.splitlines()]
        return [n for n in notes if job in (None, n.job) and kind in (None, n.kind)]

    def runs(self, kind: str | None = None) -> Counter[str]:
        """How often each job was run."""
        return Counter(note.job for note in self.notes(kind=kind))
