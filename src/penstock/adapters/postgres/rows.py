"""Reads jobs, and what they are waiting for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Connection, Database
from penstock.adapters.sql.job_rows import BAND, COLUMNS, LANE, SEQ, STATE, TURN, in_lines, job_of
from penstock.lanes.view import why_waiting
from penstock.model.job import Job

FAR = 10_000
"""How many of the jobs ahead of one are counted."""
_COLUMNS = COLUMNS.replace("history", "'[' || array_to_string(history, ',') || ']'")


async def read_jobs(
    database: Database, connection: Connection, condition: str, *values: Any, timeout: float
) -> list[Job]:
    """The jobs for which `condition` (what follows SELECT ... FROM jobs) holds."""
    text = database.sql(f"SELECT {_COLUMNS} FROM penstock.jobs {condition}")
    rows = await connection.fetch(text, *values, timeout=timeout)
    served: set[str] = set()
    lanes: dict[int, str] = {}
    now = database.clock.now()
    if any(row[STATE] == "queued" for row in rows):
        kinds = "SELECT DISTINCT unnest(kinds) FROM penstock.processes WHERE lease_until > $1"
        served = {kind for (kind,) in await connection.fetch(database.sql(kinds), now)}
        if waiting := in_lines(rows):
            lanes = await _why_waiting(database, connection, waiting, now)
    return [job_of(row, served, lanes, now) for row in rows]


async def _why_waiting(
    database: Database, connection: Connection, rows: Sequence[Any], now: float
) -> dict[int, str]:
    """By seq, what keeps jobs in the lines of lanes from starting."""
    names = sorted({row[LANE] for row in rows})
    states = await store.look_at(database, connection, names)
    places = zip(*((row[SEQ], row[LANE], row[BAND], row[TURN]) for row in rows), strict=True)
    ahead = dict(await connection.fetch(database.sql("ahead"), *places, FAR))
    return {
        row[SEQ]: why_waiting(row[LANE], store.family(states, row[LANE]), ahead[row[SEQ]], now)
        for row in rows
    }
