"""Receipts of a run's calls: recorded without writing a step, and taken by a rerun.

A receipt is a row of the job's steps, under a keyed hash of the request. What raises makes those
void that the failed attempt has used: a malformed answer must not come back for ever. What merely
ends a run early (a kill, a release, a stop, a timeout) leaves them, and so does a step that was
recorded since.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from itertools import count
from typing import Any, Protocol

from penstock import runtime
from penstock.engine.run import Run
from penstock.engine.step_call import current_key
from penstock.engine.step_recorder import StepRecorder
from penstock.errors import LeaseLost
from penstock.model.payload import encode_step
from penstock.model.step import STEP_RESULT_LIMIT, step_key
from penstock.ports.receipts import ReceiptAnswer, ReceiptRequest
from penstock.ports.steps import StepRow


class RecordBook(Protocol):
    """The limits and the lease of a run's records, which steps and receipts share."""

    async def ready(self, name: str) -> None:
        """Load what earlier runs have recorded. An error where this run cannot record any more."""
        ...

    def check_room(self, key: str, what: str) -> None:
        """StepLimit if it would be one record too many."""
        ...

    def add_bytes(self, size: int) -> bool:
        """Whether there is room for so much more; then it is taken."""
        ...

    def add_key(self, key: str) -> None: ...

    def working(self, change: int) -> None:
        """So many more records are under way."""
        ...


class RunReceipts:
    """The receipts of one run."""

    def __init__(self, run: Run, version: str, recorder: StepRecorder, book: RecordBook) -> None:
        self.run = run
        self.version = version
        self.recorder = recorder
        self.book = book
        self._calls: dict[str, count[int]] = {}
        self._known: dict[str, StepRow] = {}
        """Those that may be taken, by key."""
        self._void: dict[tuple[str, str], set[int]] = {}
        """Occurrences of a request that are void, and stay in the history."""
        self._used: dict[str | None, list[StepRow]] = {}
        """Made or taken since the last record, by the step they are made in."""
        self._writing: set[asyncio.Task[bool]] = set()

    def load(self, rows: list[StepRow]) -> None:
        """What earlier runs have left."""
        for row in rows:
            if json.loads(row.details or "{}").get("void"):
                self._void.setdefault((row.name, row.arguments), set()).add(row.occurrence)
            else:
                self._known[row.key] = row

    def begin(self, asked: ReceiptRequest) -> CallReceipt:
        """The receipt of one call; counted at once, as steps are."""
        text = encode_step([asked.lane, asked.model, asked.request], "a request to be recorded")
        number = next(self._calls.setdefault(text, count(1)))
        return CallReceipt(self, asked, text, number, current_key.get())

    def place(self, name: str, hashed: str, number: int) -> int:
        """The occurrence that is the n-th of those which are not void."""
        void = self._void.get((name, hashed), ())
        return next(
            n
            for n in count(number)
            if n - sum(one <= n for one in void) == number and n not in void
        )

    def take(self, key: str, step: str | None) -> Any:
        """The answer of a receipt; None: there is none."""
        row = self._known.get(key)
        if row is None or row.result is None:
            return None
        self._used.setdefault(step, []).append(row)
        return json.loads(row.result)

    async def write(self, row: StepRow, step: str | None) -> None:
        """Store a receipt, also where whoever waits for it is cancelled meanwhile."""
        self.book.add_key(row.key)
        self._used.setdefault(step, []).append(row)
        self.book.working(1)
        writing = asyncio.create_task(self.recorder.write(self.run, row), name="penstock-receipt")
        self._writing.add(writing)
        writing.add_done_callback(self._written)
        if not await asyncio.shield(writing):
            raise LeaseLost(self.run.lease.id, row.name)

    def _written(self, writing: asyncio.Task[bool]) -> None:
        self._writing.discard(writing)
        self.book.working(-1)
        if not writing.cancelled():
            writing.exception()  # whoever waited was told

    def settled(self, *steps: str | None) -> None:
        """A step was recorded, or taken from its record: what it and its caller have asked before
        is good."""
        for step in steps:
            self._used.pop(step, None)

    async def make_void(self, *steps: str | None) -> None:
        """An attempt at these steps has failed; without any, the whole run."""
        used = [row for step in (steps or list(self._used)) for row in self._used.pop(step, ())]
        if not used:
            return
        if self._writing:
            await asyncio.wait(self._writing)
        rows = {row.key: row for row in used}.values()
        # Where the lease is lost it is not ours to say; the new holder goes by what it meets.
        await asyncio.gather(*(self.recorder.write(self.run, _void(row)) for row in rows))


class CallReceipt:
    """See `penstock.ports.receipts.Receipt`."""

    def __init__(
        self, receipts: RunReceipts, asked: ReceiptRequest, text: str, number: int, step: str | None
    ) -> None:
        self._receipts = receipts
        self._asked = asked
        self._text = text
        self._number = number
        self._step = step
        self._hash = self._key = ""
        self._occurrence = 0
        self._started_at = self._began = 0.0

    async def found(self) -> dict[str, Any] | None:
        receipts, name = self._receipts, self._asked.lane
        await receipts.book.ready(name)
        secret = await receipts.recorder.secret()
        digest = hmac.new(secret, self._text.encode(), hashlib.blake2b).hexdigest()
        self._hash = digest[:32]
        self._occurrence = receipts.place(name, self._hash, self._number)
        self._key = step_key(name, self._hash, self._occurrence)
        known: dict[str, Any] | None = receipts.take(self._key, self._step)
        if known is None:
            receipts.book.check_room(self._key, f"a receipt of {name!r}")
            self._started_at, self._began = receipts.run.member.now(), runtime.monotonic()
        return known

    async def keep(self, answer: ReceiptAnswer) -> dict[str, Any]:
        receipts, asked = self._receipts, self._asked
        text = encode_step(dict(answer.value), "an answer to be recorded")
        size = len(text.encode())
        # Said in the receipt; the call itself has succeeded, and is asked again by a rerun.
        too_large = size > STEP_RESULT_LIMIT or not receipts.book.add_bytes(size)
        told = {
            "model": asked.model,
            "parameters": {**asked.parameters, **answer.parameters},
            "seconds": round(runtime.monotonic() - self._began, 6),
            **answer.usage._asdict(),
            "too_large": too_large or None,
        }
        row = StepRow(
            self._key,
            asked.lane,
            self._hash,
            self._occurrence,
            receipts.version,
            asked.lane,
            1,
            self._started_at,
            receipts.run.member.now(),
            None if too_large else text,
            encode_step({name: one for name, one in told.items() if one is not None}, "a receipt"),
        )
        await receipts.write(row, self._step)
        value: dict[str, Any] = json.loads(text)
        return value


def _void(row: StepRow) -> StepRow:
    details = {**json.loads(row.details or "{}"), "void": True}
    return row._replace(details=encode_step(details, "a receipt"))
