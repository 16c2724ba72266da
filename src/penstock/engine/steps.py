"""`ctx.step`: parts of a job whose result is recorded, and taken from the record by a rerun."""

from __future__ import annotations

import asyncio
import json
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from inspect import CORO_CLOSED
from inspect import getcoroutinestate as getstate
from itertools import count
from typing import Any

from penstock.engine.handlers import Handler
from penstock.engine.receipts import RunReceipts
from penstock.engine.requests import Requests
from penstock.engine.retry import retry_delay
from penstock.engine.run import Run
from penstock.engine.run_records import RunRecords
from penstock.engine.step_call import (
    Invoke,
    StepCall,
    check_options,
    check_transaction,
    current_key,
    hash_arguments,
)
from penstock.engine.step_recorder import StepRecorder
from penstock.engine.step_results import RunResults
from penstock.errors import NOT_ATTEMPTS, LeaseLost, StepMismatch, Suspended, is_permanent
from penstock.model.payload import byte_length, encode_step
from penstock.model.step import short_hash, step_key
from penstock.ports.steps import EVENT_NAME, WAIT_HASH, StepRow
from penstock.telemetry import tracing

ANYWHERE: nullcontext[None] = nullcontext()


class RunSteps:
    """The steps of one run. Made with its first one."""

    def __init__(
        self, run: Run, handler: Handler, recorder: StepRecorder, requests: Requests
    ) -> None:
        self._run = run
        self._handler = handler
        self._requests = requests
        self._calls: dict[tuple[str, str], count[int]] = {}
        self._seen: set[str] = set()
        """Keys of the steps that this run has called."""
        self._calls_made: set[weakref.ref[Coroutine[Any, Any, Any]]] = set()
        """Steps and waits that were called; those that are over, or forgotten, count no more."""
        self._results = RunResults(run.lease.id, recorder)
        self.records = RunRecords(run, handler.version, recorder)
        self.receipts = RunReceipts(self.records)

    def begin(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        lane: str | None,
        retries: int,
        timeout: float | None,
        strict: bool,
        transaction: bool,
    ) -> StepCall:
        """The call that this is, by its name, its arguments and how often both have been called.
        Not async: in a `gather` they are counted in the order in which they are written."""
        self._go_on_unwinding()
        check_options(name, function, lane, retries, timeout)
        if transaction:
            check_transaction(name, function, self._run.member.transactions)
        hashed = hash_arguments(name, arguments)
        # One C call for each, so that threads of a handler do not get the same number.
        occurrence = next(self._calls.setdefault((name, hashed), count(1)))
        key = step_key(name, hashed, occurrence)
        self._seen.add(key)
        return StepCall(
            name,
            function,
            arguments,
            hashed,
            occurrence,
            key,
            lane,
            retries,
            timeout,
            strict,
            transaction,
        )

    def begin_wait(self, name: str) -> StepCall:
        """The same for a wait, which calls no function. Its length is no part of it: what counts is
        the end that was recorded first, so that it may be computed anew in each run."""
        return self._begin_other(name, WAIT_HASH)

    def begin_event(self, text: str) -> StepCall:
        """The same for an event to emit, of which this is the JSON text."""
        return self._begin_other(EVENT_NAME, short_hash(text))

    def _begin_other(self, name: str, hashed: str) -> StepCall:
        self._go_on_unwinding()
        occurrence = next(self._calls.setdefault((name, hashed), count(1)))
        key = step_key(name, hashed, occurrence)
        return StepCall(name, _nothing, (), hashed, occurrence, key, None, 0, None, False)

    async def emit(self, call: StepCall, text: str) -> None:
        """Record an event, unless an earlier run has."""
        records = self.records
        await records.ready("emit")
        if call.key not in records.known:
            records.check_bytes("an event", len(text.encode()))
            now = self._run.member.now()
            await records.write(self.row(call, 1, now)._replace(finished_at=now, result=text))

    @asynccontextmanager
    async def waiting(self, name: str) -> AsyncIterator[None]:
        """For as long as a wait lasts; what is known of it has been loaded."""
        await self.records.ready(name)
        yield
        self.receipts.settled(current_key.get())

    def under_way(self, call: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """This is a step or wait of the run, until it has ended. One that is cancelled before its
        first line, or that nobody ever awaits, is none any more."""
        self._calls_made.add(weakref.ref(call, self._calls_made.discard))
        return call

    @property
    def alone(self) -> bool:
        """Whether nothing is under way but the wait that asks."""
        calls = [made() for made in list(self._calls_made)]
        going = sum(call is not None and getstate(call) != CORO_CLOSED for call in calls)
        return going + self.records.writing <= 1

    async def run(self, call: StepCall, invoke: Invoke) -> Any:
        """What the step came to: from its record, else by calling its function."""
        await self.records.ready(call.name)
        result = await self._step(call, invoke)
        self.receipts.settled(call.key, current_key.get())
        return result

    def _go_on_unwinding(self) -> None:
        """Where the job is suspended and this is called in a `finally` on the way: go on. What is
        called there is for the run that gets so far without a suspension."""
        suspended = self._run.suspended
        if suspended is not None and _is_by(sys.exception(), suspended):
            raise suspended

    async def _step(self, call: StepCall, invoke: Invoke) -> Any:
        key, known = call.key, self.records.known.get(call.key)
        if known is not None and known.result is not None:
            return await self._results.read(known)
        if call.strict and known is None:
            self._refuse_mismatch(call)
        self.records.count(key, call.name)
        token = current_key.set(key)
        try:
            with tracing.span(f"step {call.name}"):
                return await self._attempt(call, 0 if known is None else known.attempts, invoke)
        finally:
            current_key.reset(token)
            if key not in self.records.known:
                self.records.keys.discard(key)

    def _refuse_mismatch(self, call: StepCall) -> None:
        """StepMismatch if there is a record of the same name and occurrence that no other call of
        this run has taken."""
        for key, row in self.records.known.items():
            same = (row.name, row.occurrence) == (call.name, call.occurrence)
            if same and row.result is not None and key not in self._seen:
                raise StepMismatch(call.name, call.occurrence)

    async def _attempt(self, call: StepCall, attempts: int, invoke: Invoke) -> Any:
        """Call the function until it succeeds or its retries are spent. They are spent once for all
        runs of the job; a run that finds them spent tries once."""
        last = max(attempts, call.retries) + 1
        now = self._run.member.now
        while True:
            attempts += 1
            row = self.row(call, attempts, now())
            if call.counted:
                await self.records.write(row)
            try:
                async with self._permit(call.lane) if call.lane else ANYWHERE:
                    row = row._replace(started_at=now())
                    if call.transaction:
                        return await self._transact(call, row)
                    value = await self._in_time(call, invoke)
            except NOT_ATTEMPTS:
                if call.counted:
                    await self.records.write(row._replace(attempts=attempts - 1))
                raise
            except Exception as error:
                await self.receipts.make_void(call.key)
                if not call.counted:
                    await self.records.write(row)
                if attempts >= last or is_permanent(error, self._handler.permanent):
                    raise
                settings = self.records.recorder.settings
                await asyncio.sleep(retry_delay(attempts, settings, self._handler.backoff))
            else:
                return await self._record(call, row, value)

    def _permit(self, lane: str) -> AbstractAsyncContextManager[object]:
        return self._requests.lanes(self._run).permit(lane)

    @staticmethod
    async def _in_time(call: StepCall, invoke: Invoke) -> Any:
        if call.timeout is None:
            return await invoke()
        limit = asyncio.timeout(call.timeout)
        try:
            async with limit:
                return await invoke()
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(
                f"step {call.name!r} took longer than its timeout of {call.timeout:g} s"
            ) from None

    async def _transact(self, call: StepCall, row: StepRow) -> Any:
        """Call the function with a connection, and record its result in its transaction. Only the
        call has a time limit: a commit that is cut short may have been made."""
        run, text = self._run, ""

        async def effect(connection: Any) -> StepRow:
            nonlocal text
            value = await self._in_time(call, lambda: call.function(connection, *call.arguments))
            text = self._encoded(call, value)
            return row._replace(
                finished_at=run.member.now(), result=await self._results.stored(call.name, text)
            )

        self.records.count(row.key, row.name)
        stored = await run.member.transact(run.lease, effect)
        if stored is None:
            raise LeaseLost(run.lease.id, call.name)
        self.records.note(stored)
        return json.loads(text)

    async def _record(self, call: StepCall, row: StepRow, value: Any) -> Any:
        text = self._encoded(call, value)
        stored = await self._results.stored(call.name, text)
        await self.records.write(row._replace(finished_at=self._run.member.now(), result=stored))
        # As a rerun gets it: a tuple has become a list the first time, too.
        return json.loads(text)

    def _encoded(self, call: StepCall, value: Any) -> str:
        """The result as JSON; an error if it is too large for the job."""
        text = encode_step(value, f"result of step {call.name!r}")
        self.records.check_bytes(f"step {call.name!r}", byte_length(text))
        return text

    def row(self, call: StepCall, attempts: int, started_at: float) -> StepRow:
        """A row for a call, without a result."""
        return StepRow(
            call.key,
            call.name,
            call.arguments_hash,
            call.occurrence,
            self._handler.version,
            call.lane,
            attempts,
            started_at,
        )


def _is_by(passing: BaseException | None, suspended: Suspended) -> bool:
    """Whether this is what suspends the job; a task group has made a group of it."""
    if isinstance(passing, BaseExceptionGroup):
        return any(_is_by(one, suspended) for one in passing.exceptions)
    return passing is suspended


def _nothing() -> None:
    """Stands for the function of a wait."""
