"""`ctx.sleep` and `ctx.wait_for`: waits that are recorded, and for which a job gives up its lease.

The handler is unwound by `Suspended` and begins again at its first line when it is time. Where
something else of the run is under way that would be lost, the job is parked instead.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from penstock.engine.parking import Parking
from penstock.engine.run import Run
from penstock.engine.step_call import StepCall, check_text
from penstock.engine.steps import RunSteps
from penstock.errors import LeaseLost, Suspended, ValidationError
from penstock.model.step import step_key
from penstock.ports.steps import END_HASH, NO_END, StepRow, signal_reason

SHORT_SECONDS = 1.0
"""A wait that is over so soon is not worth giving up the lease."""
LONGEST_SECONDS = 10 * 366 * 86400.0
"""A sleep or timeout is no longer than that."""


@dataclass(slots=True, frozen=True)
class RunWaits:
    """The sleeps and waits for signals of one run."""

    run: Run
    steps: RunSteps
    parking: Parking
    poll_seconds: float

    def begin_sleep(self) -> StepCall:
        """Count the call, as steps are counted."""
        return self.steps.begin_wait("sleep")

    def begin_wait_for(self, name: str) -> StepCall:
        """Count the call, as steps are counted."""
        check_text("the name of a signal", name)
        return self.steps.begin_wait(f"wait_for:{name}")

    async def sleep(self, call: StepCall, seconds: float) -> None:
        """Wait until the time that was recorded when the job first came here."""
        async with self.steps.waiting(call.name):
            until = await self._until(self.steps.row(call, 1, self.run.member.now()), seconds)
            await self._wait(until, "sleeps")

    async def wait_for(self, call: StepCall, name: str, timeout: float | None) -> Any:
        """The payload of the signal; None after the timeout. Either is recorded."""
        steps, now = self.steps, self.run.member.now
        async with steps.waiting(call.name):
            known = steps.records.known.get(call.key)
            if known is not None and known.result is not None:
                return json.loads(known.result)
            row = steps.row(call, 1, now())
            until = NO_END
            if timeout is not None:
                ends = f"{call.name}:until"
                key = step_key(ends, END_HASH, call.occurrence)
                end = row._replace(key=key, name=ends, arguments=END_HASH)
                until = await self._until(end, timeout)
            while True:
                answer = row._replace(finished_at=now())
                held, payload = await self.run.member.consume(self.run.lease, name, answer)
                if not held:
                    raise LeaseLost(self.run.lease.id, call.name)
                if payload is not None:
                    steps.records.note(answer._replace(result=payload))
                    return json.loads(payload)
                if now() >= until:
                    await steps.records.write(row._replace(finished_at=now(), result="null"))
                    return None
                await self._wait(until, signal_reason(name), name)

    async def _until(self, row: StepRow, seconds: float) -> float:
        """When a wait ends: recorded the first time. Again if the clock was ahead then and has been
        set back: a sleep of seconds must not last until the clock is there again."""
        records = self.steps.records
        known, at = records.known.get(row.key), self.run.member.now()
        if known is None or known.result is None or (known.finished_at or 0.0) > at:
            known = row._replace(finished_at=at, result=json.dumps(at + seconds))
            await records.write(known)
        return float(json.loads(known.result or "0"))

    async def _wait(self, until: float, reason: str, signal: str | None = None) -> None:
        """Suspend the job until then, or until the signal comes. Where it cannot be, wait here: for
        a signal only so long that it is worth another look."""
        run = self.run
        left = until - run.member.now()
        if left > SHORT_SECONDS and self.steps.alone and not run.waits and not run.requests:
            run.suspended = Suspended(until, reason, signal)
            raise run.suspended
        if signal is not None:
            left = min(left, self.poll_seconds)
        if left > 0:
            async with self.parking.parked(run, timed=False):
                await asyncio.sleep(left)


def seconds_of(what: str, length: Any) -> float:
    """The length of a wait. Less than nothing is nothing: `until - time.time()` may be so."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if not isinstance(seconds, int | float) or not seconds <= LONGEST_SECONDS:
        raise ValidationError(
            f"{what} is seconds or a timedelta, at most ten years, not {length!r}"
        )
    return max(0.0, float(seconds))
