"""Receipts of one run, beside what is seen from outside."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from penstock.engine.receipts import RunReceipts
from penstock.engine.run_records import RunRecords
from penstock.engine.step_recorder import StepRecorder
from penstock.errors import QueueUnavailable
from penstock.model.settings import EngineConfig
from penstock.ports.receipts import ReceiptAnswer, ReceiptRequest, Usage
from penstock.ports.steps import StepRow, shown

ASKED = ReceiptRequest("api", ["GET", "/"])
KEPT = replace(ASKED, kept="vectors")


class Recorder:
    """Stores rows in memory."""

    def __init__(self) -> None:
        self.settings = EngineConfig()
        self.rows: dict[str, StepRow] = {}
        self.error: Exception | None = None

    async def secret(self) -> bytes:
        if self.error is not None:
            raise self.error
        return b"secret"

    async def write(self, run: Any, row: StepRow) -> bool:
        self.rows[row.key] = row
        return True


def receipts_in(recorder: Recorder) -> RunReceipts:
    run: Any = SimpleNamespace(
        lease=SimpleNamespace(id="job", token=1),
        member=SimpleNamespace(now=lambda: 1000.0),
        **dict.fromkeys(("suspended", "ended", "interrupted")),
    )
    return RunReceipts(RunRecords(run, "", cast(StepRecorder, recorder)))


async def test_receipt_that_refers_to_its_answer_is_never_void_nor_taken() -> None:
    recorder = Recorder()
    for occurrence in (1, 2):  # in two runs
        receipts = receipts_in(recorder)
        receipts.load(list(recorder.rows.values()))
        await receipts.begin(KEPT).refer(ReceiptAnswer({}, Usage(9)))
        await receipts.make_void()
        assert len(recorder.rows) == occurrence
        assert await receipts.begin(ASKED).found() is None
    rows = [shown(row) for row in recorder.rows.values()]
    assert [(one.occurrence, one.recorded, one.result) for one in rows] == [
        (1, True, None),
        (2, True, None),
    ]
    told = [one.receipt for one in rows if one.receipt is not None]
    assert [(one.kept, one.tokens_in, one.void) for one in told] == [("vectors", 9, False)] * 2


async def test_receipt_that_only_refers_to_its_answer_fails_no_job() -> None:
    recorder = Recorder()
    recorder.settings = EngineConfig(max_steps=1)
    receipts = receipts_in(recorder)
    for _ in range(3):
        await receipts.begin(KEPT).refer()
    assert len(recorder.rows) == 1
    recorder.error = QueueUnavailable("gone")
    await receipts_in(recorder).begin(KEPT).refer()
    assert len(recorder.rows) == 1


async def test_what_is_answered_after_the_handler_has_raised_is_void_too() -> None:
    """The handler asks twice at once, and is raised out of its `gather` by the first."""
    recorder = Recorder()
    receipts = receipts_in(recorder)
    one, other = (receipts.begin(ReceiptRequest("api", ["GET", "/"])) for _ in range(2))
    await asyncio.gather(one.found(), other.found())
    await one.keep(ReceiptAnswer({"status": 200}))
    await receipts.make_void()
    await other.keep(ReceiptAnswer({"status": 200}))

    told = [json.loads(row.details or "") for row in recorder.rows.values()]
    assert [one.get("void") for one in told] == [True, True]
