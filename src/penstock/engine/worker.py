"""Workers: each runs one job at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from penstock.engine.context import JobContext, current
from penstock.engine.handlers import Handler
from penstock.engine.log_fields import of_lease
from penstock.engine.outcomes import failed, interrupted
from penstock.engine.run import Interrupt, Run
from penstock.engine.spans import processing
from penstock.engine.thread_call import ThreadCall
from penstock.engine.watchdog import overdue
from penstock.engine.worker_state import WorkerState
from penstock.model.payload import encode_result
from penstock.ports.lanes import News, Report, Returned
from penstock.ports.queue import Lease, Outcome, Settlement

log = logging.getLogger("penstock")


class Worker:
    """A coroutine that takes jobs from the internal queue, and from nowhere else."""

    def __init__(
        self, bench: WorkerState, name: str, clean: Context, retired: Callable[[Worker], None]
    ) -> None:
        """Jobs run in copies of the context `clean`. `retired` hears when the worker has ended
        because it is one too many."""
        self._bench = bench
        self._name = name
        self._clean = clean
        self._retired = retired
        self._start()

    def _start(self) -> None:
        context: Context = self._clean.copy()
        self.task = asyncio.create_task(self._loop(), name=self._name, context=context)

    async def _loop(self) -> None:
        bench, waiting = self._bench, self._bench.internal_queue
        while not bench.closed:
            lease = waiting.get_nowait() if not waiting.empty() else await waiting.get()
            if not isinstance(lease, Lease):
                # A job is back from waiting for others: it goes on in this worker's place.
                bench.busy += 1
                lease.set_result(None)
                self._retired(self)
                return
            if lease.seq in bench.dropped:
                bench.dropped.discard(lease.seq)
                bench.hand_back(lease, Outcome.CANCEL_SEEN)
                continue
            if lease.lane and bench.member.now() > lease.void_at:
                bench.hand_back(lease)
                continue
            run = self._run(lease)
            bench.busy += 1
            try:
                if bench.traced:
                    with processing(run):
                        await self._do(run)
                else:
                    await self._do(run)
            finally:
                bench.busy -= run.placed
                bench.forget(lease)
                bench.freed()
            if not run.placed:  # it ended while it waited: another worker has its place
                self._retired(self)
                return
            if not self._is_clean():
                # The handler left context variables behind. The next job must not see them,
                # and they cannot be unset: go on in a fresh task.
                if not bench.closed:
                    self._start()
                return
            # A handler need not suspend; the event loop must get its turn all the same.
            await asyncio.sleep(0)

    def _is_clean(self) -> bool:
        try:
            return copy_context() == self._clean
        except Exception:  # a value that refuses to be compared was left behind
            return False

    def _run(self, lease: Lease) -> Run:
        member = self._bench.member
        now = member.now()
        limit = lease.timeout or self._bench.handlers[lease.kind].timeout
        return Run(lease, member, self.task, now, limit, self._give_up)

    async def _do(self, run: Run) -> None:
        bench, lease, task = self._bench, run.lease, self.task
        handler = bench.handlers[lease.kind]
        context = JobContext(run, bench.services)
        bench.runs[lease.ref] = run
        bench.watchdog.watch(run)
        token = current.set(context)
        thread: ThreadCall | None = None
        settlement: Settlement | None = None
        try:
            arguments = handler.arguments.parse(lease.payload)
            if handler.is_async:
                result = await handler.function(context, **arguments)
            else:
                thread = ThreadCall(handler, context, arguments)
                result, error = await thread.result
                if error is not None:
                    raise error
            settlement = _completed(run, result)
            since = bench.blocked_since(run)
            if since is not None and since < run.deadline <= run.member.now():
                # The watchdog was blocked like everybody else. Only the run's own doing counts:
                # who merely comes after it is late through no fault of theirs.
                run.interrupted = overdue(run, run.member.now())
        except asyncio.CancelledError as error:
            if run.interrupted is None:
                if task.cancelling():  # the worker itself is being ended
                    run.interrupted = Interrupt.STOPPING
                    self._settle(run, self._interrupted(run, handler, thread))
                    raise
                settlement = failed(run, error, handler, bench.settings)
        except GeneratorExit as error:
            if not task.get_loop().is_running():  # the program is being torn down
                raise
            settlement = failed(run, error, handler, bench.settings)
        except BaseException as error:
            settlement = failed(run, error, handler, bench.settings)
        finally:
            current.reset(token)
            bench.runs.pop(lease.ref, None)
            bench.parked.discard(lease.ref)
        if run.interrupted is None:
            self._settle(run, settlement)
        else:
            await self._end_interrupted(run, handler, thread)
        if run.placed:
            took = run.member.now() - run.worker_since
            bench.average_seconds += (took - bench.average_seconds) * 0.2

    async def _end_interrupted(self, run: Run, handler: Handler, thread: ThreadCall | None) -> None:
        while run.task.cancelling():
            run.task.uncancel()
        run.stop_waiting()
        try:
            if not run.given_up:
                ended = self._interrupted(run, handler, thread)
                if thread is not None and thread.running:
                    self._mark_stuck(run, ended)
                self._settle(run, ended)
            if thread is not None:
                # The worker stays occupied until the thread returns.
                await thread.returned.wait()
        finally:
            self._bench.stuck.pop(run.lease.ref, None)
            self._bench.holds.pop(run.lease.ref, None)

    def _interrupted(
        self, run: Run, handler: Handler, thread: ThreadCall | None
    ) -> Settlement | None:
        stuck = thread is not None and thread.running
        return interrupted(run, handler, self._bench.settings, stuck=stuck)

    def _give_up(self, run: Run) -> None:
        """The handler goes on although it was cancelled: the job does not wait for it."""
        bench = self._bench
        if bench.runs.pop(run.lease.ref, None) is None:
            return
        bench.parked.discard(run.lease.ref)
        handler = bench.handlers[run.lease.kind]
        ended = interrupted(run, handler, bench.settings, stuck=True)
        run.given_up = True
        self._mark_stuck(run, ended)
        self._settle(run, ended)
        bench.freed()

    def _mark_stuck(self, run: Run, ended: Settlement | None) -> None:
        lease = run.lease
        message = "job %s (%s) is settled but its handler is still running"
        log.warning(message, lease.id, lease.kind, extra=of_lease(lease))
        self._bench.stuck[lease.ref] = run
        if ended is not None and ended.outcome is Outcome.RETRY:
            self._bench.holds[lease.ref] = lease

    def _settle(self, run: Run, settlement: Settlement | None) -> None:
        if run.slot_again is not None:
            self._bench.settler.give_back(Returned(run.slot_again, None, 0, 0))
            run.slot_again = None
        if settlement is not None:
            settlement = self._with_answer(run, settlement)
            run.ended = settlement
            self._bench.settler.add(settlement, run)

    def _with_answer(self, run: Run, settlement: Settlement) -> Settlement:
        """Let the job's lane learn that a request was answered, however its handler ended."""
        report = settlement.report
        if not run.answered:
            return settlement
        run.answered = False
        if report is None:
            return settlement._replace(report=Report(News.SUCCESS))
        if report.lane not in (None, run.lane):
            self._bench.services.permits.tell(run, Report(News.SUCCESS))
        return settlement


def _completed(run: Run, result: Any) -> Settlement:
    settlement = Settlement(
        run.lease, Outcome.COMPLETED, run.started_at, run.member.now(), encode_result(result)
    )
    if run.lease.lane:
        return settlement._replace(report=Report(News.SUCCESS))
    return settlement
