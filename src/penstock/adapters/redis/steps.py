"""Steps of jobs as Redis keeps them: a hash for each job that has any, a field for each step.

A value is a line of JSON, and after a newline the result as it was written, if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.adapters.redis.connections import Connections
from penstock.ports.queue import Lease, StepWrite
from penstock.ports.steps import StepRow

AT_A_TIME = 500
"""Steps read in one trip, about: nobody else waits long for the server."""


def write_ask(writes: Sequence[StepWrite]) -> tuple[list[dict[str, Any]], list[str]]:
    """What to ask for each step, and the rows that go beside it as they are."""
    leases = [{**lease_ask(lease), "key": row.key} for lease, row in writes]
    return leases, [_stored(row) for _, row in writes]


def lease_ask(lease: Lease) -> dict[str, Any]:
    """What proves the lease."""
    return {"seq": str(lease.seq), "id": lease.id, "token": lease.token}


async def read(connections: Connections, job_id: str) -> list[StepRow]:
    """The steps of a job, in the order in which they were begun."""
    tag = connections.address.tag
    seq = await connections.command("ZSCORE", f"{tag}:ids", job_id)
    if seq is None:
        return []
    found: dict[str, StepRow] = {}
    cursor = "0"
    while True:
        name = f"{tag}:steps:{int(float(seq))}"
        cursor, flat = await connections.command("HSCAN", name, cursor, "COUNT", AT_A_TIME)
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            found[key] = read_row(key, value)
        if cursor == "0":
            break
    order = ("started_at", "name", "occurrence", "key")
    return sorted(found.values(), key=lambda row: [getattr(row, name) for name in order])


def line_of(row: StepRow) -> str:
    """All of a step but its key and its result, which is put between the others when it is read."""
    return json.dumps([*row[1:-2], row.details])


def _stored(row: StepRow) -> str:
    line = line_of(row)
    return line if row.result is None else f"{line}\n{row.result}"


def read_row(key: str, value: str) -> StepRow:
    """A step by its key and what is stored under it."""
    line, newline, result = value.partition("\n")
    *known, details = json.loads(line)
    return StepRow._make((key, *known, result if newline else None, details))
