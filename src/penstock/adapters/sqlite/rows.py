"""Reading jobs, with what they wait for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from penstock import runtime
from penstock.adapters.sql.job_rows import COLUMNS, SEQ, STATE, in_lines, job_of
from penstock.adapters.sqlite.lane_view import why_waiting
from penstock.model.job import Job


def read_jobs(
    connection: sqlite3.Connection, condition: str, parameters: Sequence[Any] = ()
) -> list[Job]:
    """The jobs for which `condition` (what follows SELECT ... FROM jobs) holds."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM jobs {condition}", parameters).fetchall()
    served: set[str] = set()
    lanes: dict[int, str] = {}
    now = runtime.now()
    if any(row[STATE] == "queued" for row in rows):
        for (kinds,) in connection.execute(
            "SELECT kinds FROM processes WHERE lease_until > ?", (now,)
        ):
            served.update(json.loads(kinds))
        lanes = {row[SEQ]: why_waiting(connection, row, now) for row in in_lines(rows)}
    return [job_of(row, served, lanes, now) for row in rows]
