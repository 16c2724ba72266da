"""Bursts: of many enqueues the latest counts (`debounce`), or the first (`unique_for`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from penstock.errors import ValidationError
from penstock.model.job import Job
from penstock.ports.queue import Debounce, NewJob

OPTIONS = ("debounce", "debounce_key", "max_wait", "unique_for", "unique_key")
"""Of `EnqueueOptions`, those that are about bursts."""
MAX_WAITS = 10
"""How many times `debounce` a job is put off at most, unless `max_wait` says how long."""
_CLASHES = {
    "debounce": ("key", "unique_for", "delay", "run_at", "log"),
    "unique_for": ("key", "debounce"),
}
_REASONS = {
    "key": "an idempotency key stands for one job as long as its row is kept",
    "unique_for": "of a burst counts either the latest or the first",
    "debounce": "of a burst counts either the latest or the first",
    "delay": "a debounced job starts when nothing has come for so long",
    "run_at": "a debounced job starts when nothing has come for so long",
    "log": "a debounced job may be that of many who enqueue it, and reports to no log",
}


class Bursts(NamedTuple):
    """Bursts that the items of a batch belong to."""

    debounce: Debounce | None
    unique_for: float | None
    keys: list[str]
    """The burst of each item."""

    def distinct(self, items: Sequence[NewJob]) -> list[NewJob]:
        """Of those that are in one burst, the one that counts."""
        latest = self.debounce is not None
        by_burst = {item.burst: item for item in (items if latest else reversed(items))}
        return [item for item in items if by_burst[item.burst] is item]

    def spread(
        self, items: Sequence[NewJob], distinct: Sequence[NewJob], jobs: Sequence[Job]
    ) -> list[Job]:
        """The job of each item, from those of the items that count."""
        by_burst = {item.burst: job for item, job in zip(distinct, jobs, strict=True)}
        return [by_burst[item.burst] for item in items]


def bursts_of(payloads: Sequence[str], options: Mapping[str, Any]) -> Bursts:
    """What these options of an enqueue say of these payloads. ValidationError where they do not
    belong together."""
    given = {name for name, value in options.items() if value is not None}
    for name, others in _CLASHES.items():
        if name in given and (other := next((one for one in others if one in given), None)):
            raise ValidationError(f"{name} and {other} exclude each other: {_REASONS[other]}")
    for name, belongs in (("debounce_key", "debounce"), ("max_wait", "debounce")):
        if name in given and belongs not in given:
            raise ValidationError(f"{name} is for {belongs}: give {belongs}=SECONDS, too")
    if "unique_key" in given and "unique_for" not in given:
        raise ValidationError("unique_key is for unique_for: give unique_for=SECONDS, too")
    if "debounce" in given:
        return Bursts(_debounce(options), None, _keys("debounce_key", options, payloads))
    seconds = _seconds("unique_for", options["unique_for"])
    if "unique_key" in given:
        texts = [f"key {key}" for key in _keys("unique_key", options, payloads)]
    else:
        texts = [f"payload {payload}" for payload in payloads]
    return Bursts(None, seconds, [hashlib.sha256(text.encode()).hexdigest() for text in texts])


def _debounce(options: Mapping[str, Any]) -> Debounce:
    seconds = _seconds("debounce", options["debounce"])
    if options.get("debounce_key") is None:
        raise ValidationError(
            "debounce needs a debounce_key: of the jobs of a kind that have the same one, the "
            'latest counts. Say what changes, such as debounce_key="user:7"'
        )
    longest = options.get("max_wait")
    longest = MAX_WAITS * seconds if longest is None else _seconds("max_wait", longest)
    if longest < seconds:
        raise ValidationError(f"max_wait, {longest:g} s, is less than debounce, {seconds:g} s")
    return Debounce(seconds, longest)


def _seconds(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < inf:
        raise ValidationError(f"{name} is a number of seconds greater than 0, not {value!r}")
    return float(value)


def _keys(name: str, options: Mapping[str, Any], payloads: Sequence[str]) -> list[str]:
    from penstock.engine.enqueuer import check_name

    given = options[name]
    keys = [given] * len(payloads) if isinstance(given, str) else list(given)
    if len(keys) != len(payloads):
        raise ValidationError(f"{len(payloads)} payloads, but {name} has {len(keys)}")
    for key in keys:
        check_name(name, key)
        if key is None:
            raise ValidationError(f"{name} has None in it: each job needs one")
    return keys
