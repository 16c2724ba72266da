"""The history of a simulation, and the promises that it must not break."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.model.job import Job

FINAL = ("completed", "failed", "cancelled")
LEGAL = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("queued", "failed"),
    ("running", "queued"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("failed", "queued"),  # redriven
}
_FINAL = str(FINAL)
_TRIGGERS = """
CREATE TEMP TABLE changes_of_jobs (
    number INTEGER PRIMARY KEY, at REAL, id TEXT, before TEXT, after TEXT,
    token_before INTEGER, token INTEGER, holder INTEGER, attempts INTEGER, result TEXT
);
CREATE TEMP TRIGGER job_changed AFTER UPDATE OF state, token ON main.jobs
WHEN old.state IS NOT new.state OR old.token IS NOT new.token OR old.state IN FINAL
BEGIN
    INSERT INTO changes_of_jobs (at, id, before, after, token_before, token, holder, attempts,
        result)
    VALUES (simulated_time(), new.id, old.state, new.state, old.token, new.token, new.holder,
        new.attempts, new.result);
END;
CREATE TEMP TRIGGER result_changed AFTER UPDATE OF result ON main.jobs
WHEN old.result IS NOT new.result AND old.state IN FINAL
BEGIN
    INSERT INTO changes_of_jobs (at, id, before, after, token_before, token, holder, attempts,
        result)
    VALUES (simulated_time(), new.id, old.state, 'result changed', old.token, new.token,
        new.holder, new.attempts, new.result);
END;
""".replace("FINAL", _FINAL)


@dataclass(slots=True)
class SimulatedHistory:
    """Kept while a simulation runs; `broken` says what of it must not be."""

    lines: list[tuple[float, str]] = field(default_factory=list)
    """What happened beside the jobs: faults, processes, what handlers and scenarios noted."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Jobs that somebody was told are stored: id to kind."""
    keys: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """Idempotency keys, by tenant and kind, to the job that they stand for."""
    settled: set[tuple[str, int]] = field(default_factory=set)
    """Leases, by job and token, that somebody has told the outcome of."""
    wrong: list[str] = field(default_factory=list)
    """What was found to be wrong while it ran."""

    def note(self, at: float, text: str) -> None:
        self.lines.append((at, text))

    def accept(self, jobs: Iterable[Job]) -> None:
        """Somebody was told that these are stored."""
        for job in jobs:
            self.accepted[job.id] = job.kind
            if job.key is not None:
                known = self.keys.setdefault((job.tenant, job.kind, job.key), job.id)
                if known != job.id:
                    self.wrong.append(f"key {job.key!r} stands for two jobs, {known} and {job.id}")

    def broken(self, connection: sqlite3.Connection) -> list[str]:
        """What has been violated, in words; also of jobs that are not finished yet."""
        found = list(self.wrong)
        states = dict(connection.execute("SELECT id, state FROM jobs"))
        lost = [job for job in self.accepted if job not in states]
        found += [f"job {job} was accepted and is lost" for job in lost]
        rows = connection.execute(
            "SELECT id, before, after, token_before, token FROM changes_of_jobs ORDER BY number"
        )
        for job, before, after, token_before, token in rows:
            if before in FINAL and (before, after) not in LEGAL:
                found.append(f"job {job} was {before} and ended again: {after}")
            elif after != before and (before, after) not in LEGAL:
                found.append(f"job {job} went from {before} to {after}")
            claimed = before == "queued" and after == "running"
            if claimed and token != token_before + 1:
                found.append(f"job {job} was claimed without a new token")
            if after == "completed" and (job, token) not in self.settled:
                found.append(f"job {job} was completed by a run that did not hold it any more")
        return found

    def told(self, connection: sqlite3.Connection, jobs: Sequence[str] = ()) -> str:
        """The history in lines, of these jobs or of all."""
        rows = connection.execute(
            "SELECT c.at, id, kind, before, after, c.token, c.holder, c.attempts, c.result"
            " FROM changes_of_jobs AS c JOIN jobs USING (id)"
        )
        lines = list(self.lines)
        for at, job, kind, before, after, token, holder, attempts, result in rows:
            if jobs and job not in jobs:
                continue
            text = f"{kind} {job[-6:]} {before} -> {after} (token {token}, attempts {attempts}"
            text += f", process {holder})" if holder else ")"
            if after == "completed" and result:
                text += f" {json.loads(result)!r}"[:80]
            lines.append((at, text))
        lines.sort(key=lambda line: line[0])
        return "\n".join(f"{at:10.4f}  {text}" for at, text in lines)


def record(connection: sqlite3.Connection, time: object) -> None:
    """Have the database note every change of a job, at the time that `time()` tells."""
    connection.create_function("simulated_time", 0, time)  # type: ignore[arg-type]
    connection.executescript(_TRIGGERS)
