"""Judges the receipts of a simulation: what is recorded is taken, and what is void is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from penstock.engine.receipts import RunReceipts
from penstock.ports.queue import Lease
from penstock.testing.rows import StepRecord


class _Receipt(NamedTuple):
    recorded: bool
    """Else it says that the answer was too large."""
    void: bool


class ReceiptBook:
    """The receipts that are stored, and what runs do with them. See `ReferenceModel`."""

    def __init__(self, wrong: list[str]) -> None:
        self._wrong = wrong
        self._stored: dict[tuple[int, str], _Receipt] = {}
        """By job and key."""
        self._used: dict[tuple[int, int], set[str]] = {}
        """What runs have made or taken, and that was of no use yet, by job and token."""

    def record(self, row: StepRecord, token: int) -> None:
        """A step was stored, by the run that holds its job with this token."""
        if row.details is None:
            return
        details = json.loads(row.details)
        if details.get("kept"):  # elsewhere: it is never taken, and never void
            return
        void = bool(details.get("void"))
        old = self._stored.get((row.job, row.key))
        if old is not None and old.void and not void:
            self._wrong.append(f"a receipt of {row.name} was void, and is not any more")
        self._stored[row.job, row.key] = _Receipt(row.result is not None, void)
        self._used.setdefault((row.job, token), set()).add(row.key)

    def forget(self, job: int, key: str) -> None:
        self._stored.pop((job, key), None)

    def look(self, lease: Lease, key: str, taken: bool) -> None:
        """A run is about to ask for something, unless it takes the receipt of this key."""
        known = self._stored.get((lease.seq, key))
        if taken:
            self._used.setdefault((lease.seq, lease.token), set()).add(key)
            if known is not None and known.void:
                self._wrong.append(f"job {lease.id} takes a receipt that is void")
        elif known is not None and known.recorded and not known.void:
            self._wrong.append(f"job {lease.id} asks again for what it has a receipt of")

    def settle(self, lease: Lease) -> None:
        """A step or a wait of a run is over: what was asked for before has been of use."""
        self._used.pop((lease.seq, lease.token), None)

    def fail(self, seq: int, job: str, token: int) -> None:
        """It is stored that this run of a job has failed."""
        left = [
            key
            for key in self._used.get((seq, token), ())
            if (one := self._stored.get((seq, key))) is not None and not one.void
        ]
        if left:
            self._wrong.append(f"job {job} has failed, and {len(left)} of its receipts stay")

    def copy(self) -> dict[tuple[int, str], _Receipt]:
        return dict(self._stored)

    def rewind(self, stored: dict[tuple[int, str], _Receipt]) -> None:
        """A run may have made its receipts void just before, and settle only now: they stay, and
        the next run stumbles over them once more."""
        self._stored = dict(stored)
        self._used.clear()


@contextmanager
def watched(book: ReceiptBook) -> Iterator[None]:
    """Have the book told of all that runs look for."""
    take, settled = RunReceipts.take, RunReceipts.settled

    def told(self: RunReceipts, key: str, step: str | None) -> Any:
        answer = take(self, key, step)
        book.look(self.run.lease, key, answer is not None)
        return answer

    def told_too(self: RunReceipts, *steps: str | None) -> None:
        settled(self, *steps)
        book.settle(self.run.lease)

    RunReceipts.take, RunReceipts.settled = told, told_too  # type: ignore[method-assign]
    try:
        yield
    finally:
        RunReceipts.take, RunReceipts.settled = take, settled  # type: ignore[method-assign]
