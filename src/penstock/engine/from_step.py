"""Finds the records that a rerun from a step takes over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.errors import ValidationError
from penstock.ports.queue import JobQueue, TakenOver
from penstock.ports.steps import END_HASH, EVENT_NAME, Recorded

PAGE = 1000
LISTED = 20
"""Names in the error."""


async def records_before(queue: JobQueue, job_id: str, step: str) -> TakenOver:
    """What a job has recorded before the first record of this name, or before the n-th where it is
    `name#n`. ValidationError, with the names that there are, if there is none."""
    recorded: list[Recorded] = []
    while page := await queue.recorded(job_id, recorded[-1].position if recorded else 0, PAGE):
        recorded += page
    found = _find(recorded, step, 1)
    if found is None and (counted := re.fullmatch(r"(.+)#([1-9]\d{0,8})", step)):
        found = _find(recorded, counted[1], int(counted[2]))
    if found is None:
        raise ValidationError(f"job {job_id} has recorded no step {step!r}; {_listed(recorded)}")
    return TakenOver(job_id, found)


def _find(recorded: Sequence[Recorded], name: str, number: int) -> int | None:
    """Where the n-th record of a name stands; of a wait, that of its end, which it begins with."""
    places = [n for n, one in enumerate(recorded) if one.row.name == name and _is_step(one)]
    if len(places) < number:
        return None
    position, row = recorded[places[number - 1]]
    ends = (f"{name}:until", END_HASH, row.occurrence)
    for one in recorded[: places[number - 1]]:
        if (one.row.name, one.row.arguments, one.row.occurrence) == ends:
            return one.position
    return position


def _listed(recorded: Sequence[Recorded]) -> str:
    known = (one.row.name for one in recorded if one.row.arguments != END_HASH and _is_step(one))
    names = list(dict.fromkeys(known))
    if not names:
        return "it has recorded none"
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"there are {', '.join(map(repr, names[:LISTED]))}{more}"


def _is_step(recorded: Recorded) -> bool:
    """Whether it is a step or a wait, and neither an event nor a receipt."""
    return recorded.row.name != EVENT_NAME and recorded.row.details is None
