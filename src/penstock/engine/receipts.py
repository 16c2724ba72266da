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
import logging
from itertools import count
from typing import Any

from penstock import runtime
from penstock.engine.run_records import RunRecords
from penstock.engine.step_call import current_key
from penstock.errors import LeaseLost, QueueError, StepLimit
from penstock.model.payload import encode_step
from penstock.model.step import STEP_RESULT_LIMIT, short_hash, step_key
from penstock.ports.receipts import ANSWERED, ReceiptAnswer, ReceiptRequest
from penstock.ports.steps import StepRow

log = logging.getLogger("penstock")

REFER_SECONDS = 5.0
"""How long an answer waits at most for the receipt that only refers to it."""


class RunReceipts:
    """The receipts of one run."""

    def __init__(self, records: RunRecords) -> None:
        self.run = records.run
        self.records = records
        self._calls: dict[str, count[int]] = {}
        self._known: dict[str, StepRow] = {}
        """Those that may be taken, by key."""
        self._void: dict[tuple[str, str], set[int]] = {}
        """Occurrences of a request that are void, and stay in the history."""
        self._used: dict[str | None, list[StepRow]] = {}
        """Made or taken since the last record, by the step they are made in."""
        self._writing: set[asyncio.Task[bool]] = set()
        self._telling: set[asyncio.Task[None]] = set()
        self._failed = False
        """The handler has raised; what it has asked before may be answered only now."""

    async def ready(self, name: str) -> None:
        """See `RunRecords`."""
        await self.records.ready(name)
        self.load(self.records.receipts)
        self.records.receipts = []

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
        number = 1  # of one that is kept elsewhere: whichever there is no receipt of
        if asked.kept is None:
            number = next(self._calls.setdefault(short_hash(text), count(1)))
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
        records = self.records
        records.keys.add(row.key)
        if self._failed:
            row = _void(row)
        else:
            self._used.setdefault(step, []).append(row)
        records.writing += 1
        writing = asyncio.create_task(
            records.recorder.write(self.run, row), name="penstock-receipt"
        )
        self._writing.add(writing)
        writing.add_done_callback(self._written)
        if not await asyncio.shield(writing):
            raise LeaseLost(self.run.lease.id, row.name)

    def unused(self, name: str, hashed: str) -> tuple[int, str]:
        """The first occurrence that no run has a receipt of, and its key."""
        number = 1
        while (key := step_key(name, hashed, number)) in self._known:
            number += 1
        return number, key

    async def refer(self, row: StepRow) -> None:
        """Store a receipt whose answer is kept elsewhere: none that could be void, or taken."""
        self._known[row.key] = row
        self.records.keys.add(row.key)
        await self.records.recorder.write(self.run, row)

    def telling(self, task: asyncio.Task[None]) -> None:
        """Such a receipt is being written."""
        self.records.writing += 1
        self._telling.add(task)
        task.add_done_callback(self._told)

    def _told(self, task: asyncio.Task[None]) -> None:
        self._telling.discard(task)
        self.records.writing -= 1

    def _written(self, writing: asyncio.Task[bool]) -> None:
        self._writing.discard(writing)
        self.records.writing -= 1
        if not writing.cancelled():
            writing.exception()  # whoever waited was told

    def settled(self, *steps: str | None) -> None:
        """A step was recorded, or taken from its record: what it and its caller have asked before
        is good."""
        for step in steps:
            self._used.pop(step, None)

    async def make_void(self, *steps: str | None) -> None:
        """An attempt at these steps has failed; without any, the whole run."""
        self._failed = self._failed or not steps
        used = [row for step in (steps or list(self._used)) for row in self._used.pop(step, ())]
        if not used:
            return
        if self._writing:
            await asyncio.wait(self._writing)
        rows = {row.key: row for row in used}.values()
        # Where the lease is lost it is not ours to say; the new holder goes by what it meets.
        recorder = self.records.recorder
        await asyncio.gather(*(recorder.write(self.run, _void(row)) for row in rows))


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
        self._started_at, self._began = receipts.run.member.now(), runtime.monotonic()

    async def found(self) -> dict[str, Any] | None:
        receipts, name = self._receipts, self._asked.lane
        await self._identify()
        self._occurrence = receipts.place(name, self._hash, self._number)
        self._key = step_key(name, self._hash, self._occurrence)
        known: dict[str, Any] | None = receipts.take(self._key, self._step)
        if known is None:
            receipts.records.check_room(self._key, f"a receipt of {name!r}")
            self._started_at, self._began = receipts.run.member.now(), runtime.monotonic()
        return known

    async def _identify(self) -> None:
        await self._receipts.ready(self._asked.lane)
        secret = await self._receipts.records.recorder.secret()
        digest = hmac.new(secret, self._text.encode(), hashlib.blake2b).hexdigest()
        self._hash = digest[:32]

    async def keep(self, answer: ReceiptAnswer) -> dict[str, Any]:
        receipts = self._receipts
        text = encode_step(dict(answer.value), "an answer to be recorded")
        size = len(text.encode())
        # Said in the receipt; the call itself has succeeded, and is asked again by a rerun.
        too_large = size > STEP_RESULT_LIMIT or not receipts.records.add_bytes(size)
        row = self._row(answer, None if too_large else text, too_large=too_large or None)
        await receipts.write(row, self._step)
        value: dict[str, Any] = json.loads(text)
        return value

    async def refer(self, answer: ReceiptAnswer = ANSWERED) -> None:
        telling = asyncio.create_task(self._refer(answer), name="penstock-refer")
        self._receipts.telling(telling)
        # The answer itself is not stored yet: it is not to wait until the queue is back.
        await asyncio.wait([telling], timeout=REFER_SECONDS)

    async def _refer(self, answer: ReceiptAnswer) -> None:
        receipts, name = self._receipts, self._asked.lane
        try:
            await self._identify()
            self._occurrence, self._key = receipts.unused(name, self._hash)
            receipts.records.check_room(self._key, "a receipt")
            await receipts.refer(self._row(answer, None, kept=self._asked.kept))
        except (LeaseLost, StepLimit, QueueError) as error:
            log.debug("job %s: no receipt of %s: %s", receipts.run.lease.id, name, error)

    def _row(self, answer: ReceiptAnswer, result: str | None, **more: Any) -> StepRow:
        records, asked = self._receipts.records, self._asked
        told = {
            "model": asked.model,
            "parameters": {**asked.parameters, **answer.parameters},
            "seconds": round(runtime.monotonic() - self._began, 6),
            **answer.usage._asdict(),
            **more,
        }
        return StepRow(
            self._key,
            asked.lane,
            self._hash,
            self._occurrence,
            records.version,
            asked.lane,
            1,
            self._started_at,
            records.run.member.now(),
            result,
            encode_step({name: one for name, one in told.items() if one is not None}, "a receipt"),
        )


def _void(row: StepRow) -> StepRow:
    details = {**json.loads(row.details or "{}"), "void": True}
    return row._replace(details=encode_step(details, "a receipt"))
