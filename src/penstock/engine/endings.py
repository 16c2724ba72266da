"""Ends runs: hands their outcome to the settler, whether or not their handler has returned."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from penstock.engine.handlers import Handlers
from penstock.engine.log_fields import of_lease
from penstock.engine.outcomes import failed, interrupted
from penstock.engine.run import Run
from penstock.engine.running import Running
from penstock.engine.settler import Settler
from penstock.lanes.reports import LaneReports
from penstock.model.settings import Settings
from penstock.ports.lanes import News, Report, Returned
from penstock.ports.queue import Outcome, Settlement

log = logging.getLogger("penstock")


@dataclass(eq=False)
class Endings:
    """The ends of the runs of a process."""

    running: Running
    settler: Settler
    reports: LaneReports
    handlers: Handlers
    settings: Settings

    def failed(self, run: Run, error: BaseException) -> Settlement:
        handler = self.handlers[run.lease.kind]
        return failed(run, error, handler, self.settings, self.reports)

    def interrupted(self, run: Run, *, stuck: bool) -> None:
        """Settle a run that was cut short. `stuck`: its handler goes on."""
        handler = self.handlers[run.lease.kind]
        ended = interrupted(run, handler, self.settings, self.reports, stuck=stuck)
        if stuck:
            message = "job %s (%s) is settled but its handler is still running"
            log.warning(message, run.lease.id, run.lease.kind, extra=of_lease(run.lease))
            self.running.stick(run, hold=ended is not None and ended.outcome is Outcome.RETRY)
        self.settle(run, ended)

    def give_up(self, run: Run) -> None:
        """The handler goes on although it was cancelled: the job does not wait for it."""
        if self.running.has(run):
            self.running.end(run)
            run.given_up = True
            self.interrupted(run, stuck=True)
            self.running.freed()

    def settle(self, run: Run, settlement: Settlement | None) -> None:
        if run.slot_again is not None:
            self.settler.give_back(Returned(run.slot_again, None, 0, 0))
            run.slot_again = None
        if settlement is not None:
            settlement = self._with_answer(run, settlement)
            run.ended = settlement
            self.settler.add(settlement, run)

    def _with_answer(self, run: Run, settlement: Settlement) -> Settlement:
        """Let the job's lane learn that a request was answered, however its handler ended."""
        report = settlement.report
        if not run.answered:
            return settlement
        run.answered = False
        if report is None:
            return settlement._replace(report=Report(News.SUCCESS))
        if report.lane not in (None, run.lane):
            self.settler.tell(run, Report(News.SUCCESS))
        return settlement
