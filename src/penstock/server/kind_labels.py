"""Bounds the number of kinds used as metric labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from penstock.model.job import JobState
from penstock.ports.operators import KindCounts
from penstock.server.queue_metrics import QueueSnapshot

MAX_OTHERS = 100
"""Kinds that have a label although no process handles them, for as long as this server is up."""
OTHER = "other"
"""What the rest are together."""


class KindLabels:
    """Tells kinds by name that a process handles, and some others: those with the most jobs when
    they are first seen, and then always the same."""

    def __init__(self, handled: Collection[str]) -> None:
        self._handled = handled
        self._others: set[str] = set()

    def bounded(self, look: QueueSnapshot) -> QueueSnapshot:
        """With one row for all kinds that have no label of their own."""
        handled = {*self._handled, *(kind for one in look.processes for kind in one.kinds)}
        unknown = [one for one in look.counts if one.kind not in handled]
        for one in sorted(unknown, key=lambda one: -sum(one.states.values())):
            if len(self._others) < MAX_OTHERS:
                self._others.add(one.kind)
        named = handled | self._others
        rest = [one for one in unknown if one.kind not in named]
        if not rest:
            return look
        told = [one for one in look.counts if one.kind in named and one.kind != OTHER]
        same = [one for one in look.counts if one.kind in named and one.kind == OTHER]
        return look._replace(counts=[*told, _together([*same, *rest])])


def _together(counts: list[KindCounts]) -> KindCounts:
    states: Counter[JobState] = Counter()
    for one in counts:
        states.update(one.states)
    oldest = [one.oldest_queued_at for one in counts if one.oldest_queued_at is not None]
    return KindCounts(OTHER, states, min(oldest, default=None))
