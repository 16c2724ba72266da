"""Counts runs once the queue has acknowledged their outcomes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from penstock.engine.run import Run
from penstock.model.job import parse_history
from penstock.model.tally import BOUNDS, ENDINGS, KindTally, RunOutcome, Tally
from penstock.ports.queue import Exchange, Lease, Outcome, Settlement

ENDING_OF = {
    Outcome.COMPLETED: RunOutcome.COMPLETED,
    Outcome.RETRY: RunOutcome.RETRY,
    Outcome.FAILED: RunOutcome.FAILED,
    Outcome.RELEASED: RunOutcome.RELEASED,
    Outcome.SUSPENDED: RunOutcome.RELEASED,
    Outcome.HANDED_BACK: RunOutcome.HANDED_BACK,
    Outcome.CANCEL_SEEN: RunOutcome.CANCELLED,
}
PLACE = {outcome: ENDINGS.index(ending) for outcome, ending in ENDING_OF.items()}
COMPLETED = ENDINGS.index(RunOutcome.COMPLETED)
REFUSED = ENDINGS.index(RunOutcome.REFUSED)
HANDED_BACK = ENDINGS.index(RunOutcome.HANDED_BACK)


def count_runs(
    tally: Tally, settled: Iterable[tuple[Settlement, Run | None]], exchange: Exchange
) -> None:
    """Add what came of one trip. Jobs that were never started here are no runs."""
    refused = {settlement.lease.ref for settlement in exchange.stale}
    odd = refused | exchange.spared
    # Every job passes here, so it is written to be quick: an enum is not looked up in a dict where
    # `is` will do, and what the runs of one kind share is looked up once.
    name, kind = "", KindTally()
    endings, waits, runs = kind.endings, kind.wait.counts, kind.run.counts
    for settlement, run in settled:
        if run is None:
            continue
        lease = settlement.lease
        if lease.kind != name:
            name, kind = lease.kind, tally.of(lease.kind)
            endings, waits, runs = kind.endings, kind.wait.counts, kind.run.counts
        if lease.crashes and _lost_before(lease):
            kind.taken_back += 1
        if odd and lease.ref in odd:
            endings[REFUSED if lease.ref in refused else HANDED_BACK] += 1
            continue
        outcome, finished_at = settlement.outcome, settlement.finished_at
        endings[COMPLETED if outcome is Outcome.COMPLETED else PLACE[outcome]] += 1
        if finished_at and outcome is not Outcome.RELEASED:
            started_at = run.started_at
            waited, took = started_at - lease.run_at, finished_at - started_at
            waits[bisect_left(BOUNDS, waited)] += 1
            runs[bisect_left(BOUNDS, took)] += 1
            if waited > 0:  # clocks of servers are only nearly known
                kind.wait.seconds += waited
            if took > 0:
                kind.run.seconds += took


def _lost_before(lease: Lease) -> bool:
    """Whether the run before this one was lost with its process."""
    history = parse_history(lease.history)
    return bool(history) and history[-1].outcome == "lost"
