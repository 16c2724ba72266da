"""Resolves abbreviated job ids, by their beginning or end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.cli.errors import InputError, NotFound

if TYPE_CHECKING:
    from penstock.app import Penstock

ID_DIGITS = 32
LEAST_DIGITS = 6
"""Of an id that is not given whole."""
SEARCHED = 1000
"""Newest jobs, or dead letters, among which such an id is looked for."""


async def whole_ids(app: Penstock, parts: Sequence[str], *, dead: bool = False) -> list[str]:
    """Each id in full and once: as given, or of the one recent job (if `dead`, the one recent dead
    letter) whose id begins or ends so. What is too short or too long for a part stays as it is."""
    known = await app.queue.get(list(parts))
    short = [part for part in parts if part not in known and LEAST_DIGITS <= len(part) < ID_DIGITS]
    if not short:
        return list(dict.fromkeys(parts))
    recent = await (app.dead_letters(limit=SEARCHED) if dead else app.jobs(limit=SEARCHED))
    ids = [job.id for job in recent]
    whole = {part: _whole(part, ids, "dead letters" if dead else "jobs") for part in short}
    return list(dict.fromkeys(whole.get(part, part) for part in parts))


def _whole(part: str, ids: list[str], what: str) -> str:
    found = [one for one in ids if one.startswith(part) or one.endswith(part)]
    if len(found) > 1:
        raise InputError(f"{len(found)} {what} have {part!r} in their id; give more of it")
    if not found:
        raise NotFound(f"none of the newest {SEARCHED:,} {what} has {part!r} in its id")
    return found[0]
