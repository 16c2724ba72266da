"""Meters of a provider: how much of a limit its callers have used, and when there is room again."""

from __future__ import annotations

import time
from bisect import insort
from dataclasses import dataclass, field

DAY = 86400.0
ROUNDING = 1e-6


@dataclass(slots=True, order=True)
class Entry:
    """What a request counts for, from when on."""

    at: float
    amount: float


@dataclass(slots=True)
class Meter:
    """Counts one thing in `sliding` windows of so many seconds, or as a `bucket` that holds `limit`
    and is refilled within them. The limit may be another at any time."""

    limit: float
    seconds: float
    refills: bool = False
    worst: float = 0.0
    """The most that was ever used at once, as a share of the limit there was; 1 is all of it."""
    _entries: list[Entry] = field(default_factory=list)
    _base: Entry = field(default_factory=lambda: Entry(0.0, 0.0))
    """Of a bucket: what was missing in it when the entries begin."""

    def left(self, now: float) -> float:
        self._forget(now)
        return self.limit - self._used(now)[0]

    def wait(self, now: float, amount: float) -> float:
        """Seconds until there is room for it."""
        missing = amount - self.left(now)
        if missing <= ROUNDING:
            return 0.0
        if self.refills:
            return missing * self.seconds / self.limit
        for entry in self._entries:
            missing -= entry.amount
            if missing <= ROUNDING:
                return entry.at + self.seconds - now
        return self.seconds

    def empties(self, now: float) -> float:
        """Seconds until all of the limit is there again, if nothing more is used."""
        missing = self.limit - self.left(now)
        if self.refills:
            return missing * self.seconds / self.limit
        return max(0.0, self._entries[-1].at + self.seconds - now) if self._entries else 0.0

    def take(self, now: float, amount: float, at: float) -> Entry:
        """Count an amount as of `at`, a moment ago at the earliest."""
        self._forget(now)
        entry = Entry(at, amount)
        insort(self._entries, entry)
        self.worst = max(self.worst, self._used(now)[1] / self.limit)
        return entry

    def correct(self, entry: Entry, amount: float) -> None:
        """It was so much in truth."""
        more, entry.amount = amount - entry.amount, amount
        if any(one is entry for one in self._entries):
            self.worst = max(self.worst, self._used(self._entries[-1].at)[1] / self.limit)
        elif self.refills:
            self._base.amount = max(0.0, self._base.amount + more)

    def _used(self, now: float) -> tuple[float, float]:
        """What is used now, and the most that was since the entries begin."""
        if not self.refills:
            total = sum(entry.amount for entry in self._entries)
            return total, total
        rate, missing, at = self.limit / self.seconds, self._base.amount, self._base.at
        most = missing
        for entry in self._entries:
            missing = max(0.0, missing - rate * max(0.0, entry.at - at)) + entry.amount
            at, most = max(at, entry.at), max(most, missing)
        return max(0.0, missing - rate * max(0.0, now - at)), most

    def _forget(self, now: float) -> None:
        gone = [one for one in self._entries if one.at <= now - self.seconds + ROUNDING]
        if self.refills and gone:
            rest, self._entries = self._entries[len(gone) :], gone
            self._base = Entry(gone[-1].at, self._used(gone[-1].at)[0])
            self._entries = rest
        elif gone:
            del self._entries[: len(gone)]


@dataclass(slots=True)
class DayMeter:
    """Counts one thing in UTC days."""

    limit: float
    worst: float = 0.0
    _day: int = 0
    _total: float = 0.0

    def left(self, now: float) -> float:
        if int(now // DAY) > self._day:
            self._day, self._total = int(now // DAY), 0.0
        return self.limit - self._total

    def wait(self, now: float, amount: float) -> float:
        return 0.0 if amount <= self.left(now) + ROUNDING else DAY - now % DAY

    def empties(self, now: float) -> float:
        return DAY - now % DAY

    def take(self, now: float, amount: float, at: float) -> Entry:
        self.left(now)
        self._total += amount
        self.worst = max(self.worst, self._total / self.limit)
        return Entry(at, amount)

    def correct(self, entry: Entry, amount: float) -> None:
        if int(entry.at // DAY) == self._day:
            self._total += amount - entry.amount
            self.worst = max(self.worst, self._total / self.limit)
        entry.amount = amount


def reset_text(seconds: float) -> str:
    """A duration as OpenAI writes it: `1s`, `6m0s`, `20ms`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:.0f}s" if minutes else f"{rest:.3f}".rstrip("0").rstrip(".") + "s"


def time_text(at: float) -> str:
    """A time as Anthropic writes it, by RFC 3339."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at + 0.999))
