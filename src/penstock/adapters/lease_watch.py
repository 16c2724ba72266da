"""Judges the leases of other processes, by this process's own clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock import runtime

RENEWALS = 3
"""A process renews so many times in the time of its lease."""


class MemberLook(NamedTuple):
    """Another membership, as one look at the queue finds it."""

    number: int
    life: str
    """The name of its life file, which no other membership ever has."""
    renewed: float
    """When it was renewed last, by whatever clock. It only matters whether it has changed."""
    lease_seconds: float


class LeaseWatch:
    """Notices when another membership is not renewed for as long as its lease.

    No time that is stored, and no clock that can be set, says whether it is: this process has to
    have seen it so itself, look after look, for a lease on its own monotonic clock. Time in which
    it did not look counts for no more than one renewal: it may have stood still itself, and
    everybody else with it."""

    def __init__(self) -> None:
        self._looked_at = runtime.monotonic()
        self._watched: dict[str, tuple[float, float]] = {}
        """By life: the renewal that was seen last, and for how many seconds since."""

    def lapsed(self, members: Iterable[MemberLook]) -> list[MemberLook]:
        """Those, of all other members there are, whose lease has run out. They may be renewed
        before they are ended: whoever ends one makes sure that it is not."""
        now = runtime.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        before, self._watched = self._watched, {}
        found = []
        for member in members:
            renewed, seconds = before.get(member.life, (None, 0.0))
            if renewed == member.renewed:
                seconds += min(passed, member.lease_seconds / RENEWALS)
            else:
                seconds = 0.0
            self._watched[member.life] = (member.renewed, seconds)
            if seconds >= member.lease_seconds:
                found.append(member)
        return found
