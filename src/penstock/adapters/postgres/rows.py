"""Reading jobs, with what they wait for."""

from __future__ import annotations

from typing import Any

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Connection, Database
from penstock.adapters.rows import COLUMNS, STATE, job_of, lanes_waited_for
from penstock.lanes.view import why_waiting
from penstock.model.job import Job

_COLUMNS = COLUMNS.replace("history", "'[' || array_to_string(history, ',') || ']'")


async def read_jobs(
    database: Database, connection: Connection, condition: str, *values: Any, timeout: float
) -> list[Job]:
    """The jobs for which `condition` (what follows SELECT ... FROM jobs) holds."""
    text = database.sql(f"SELECT {_COLUMNS} FROM penstock.jobs {condition}")
    rows = await connection.fetch(text, *values, timeout=timeout)
    served: set[str] = set()
    lanes: dict[str, str] = {}
    now = database.clock.now()
    if any(row[STATE] == "queued" for row in rows):
        kinds = "SELECT DISTINCT unnest(kinds) FROM penstock.processes WHERE lease_until > $1"
        served = {kind for (kind,) in await connection.fetch(database.sql(kinds), now)}
        if names := lanes_waited_for(rows):
            states = await store.look_at(database, connection, sorted(names))
            lanes = {name: why_waiting(name, store.family(states, name), now) for name in names}
    return [job_of(row, served, lanes, now) for row in rows]
