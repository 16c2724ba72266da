"""`penstock status`: is the queue moving, and if not, why."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.cli.options import ConfigOption, JsonOption, QueueOption
from penstock.cli.output import Column, note, print_json, print_table, say
from penstock.cli.session import opened
from penstock.cli.text import age, printable
from penstock.model.job import JobState

if TYPE_CHECKING:
    from penstock.ports.lanes import LaneInfo
    from penstock.ports.operators import KindCounts, ProcessInfo


def show_status(
    queue: QueueOption = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Show what is queued, running and stuck.

    Jobs per kind and state, the worker processes, kinds with queued jobs that no worker process
    handles, and lanes that are blocked or whose breaker is open.
    """
    from penstock.cli.lane_view import sentence, troubled
    from penstock.config import hide_secrets

    with opened(queue, config) as (app, run):
        counts = run(app.counts())
        processes = run(app.processes())
        lanes = troubled(run(app.lane_infos()))
        url = hide_secrets(app.config.queue)
    lonely = unhandled(counts, processes)
    if as_json:
        print_json(_as_dict(url, counts, processes, lonely, lanes))
        return
    oldest = [kind.oldest_queued_at for kind in counts if kind.oldest_queued_at is not None]
    say(f"queue          {printable(url)}")
    say(f"oldest queued  {age(min(oldest)) if oldest else '-'}")
    say()
    if counts:
        print_table(*counts_rows(counts))
    else:
        say("no jobs")
    say()
    if processes:
        print_table(_PROCESS_COLUMNS, [_process_row(process) for process in processes])
    else:
        say("no worker processes")
    if lonely:
        queued = ", ".join(f"{k.kind} ({k.states[JobState.QUEUED]:,} queued)" for k in lonely)
        note(
            f"\nwarning: no worker process handles {queued}; start one with such handlers: "
            "penstock worker MODULE:APP"
        )
    if lanes:
        note(f"\nwarning: lanes that need attention: {sentence(lanes)}; see penstock lanes")


def live_kinds(processes: Iterable[ProcessInfo]) -> set[str]:
    """The kinds that some worker process handles now."""
    return {kind for process in processes if not _gone(process) for kind in process.kinds}


def unhandled(counts: Iterable[KindCounts], processes: Sequence[ProcessInfo]) -> list[KindCounts]:
    """Kinds with queued jobs that no worker process handles."""
    handled = live_kinds(processes)
    return [
        kind for kind in counts if kind.states.get(JobState.QUEUED) and kind.kind not in handled
    ]


def counts_rows(counts: Sequence[KindCounts]) -> tuple[list[Column], list[list[str]]]:
    """A table of jobs per kind and state, and their sums."""
    columns = [Column("kind"), *(Column(state, right=True) for state in JobState)]
    columns += [Column("oldest queued", right=True)]
    rows = []
    for kind in counts:
        cells = [f"{kind.states.get(state, 0):,}" for state in JobState]
        oldest = "-" if kind.oldest_queued_at is None else age(kind.oldest_queued_at)
        rows.append([kind.kind, *cells, oldest])
    if len(counts) != 1:
        sums = [f"{sum(k.states.get(state, 0) for k in counts):,}" for state in JobState]
        rows.append(["all", *sums, ""])
    return columns, rows


_PROCESS_COLUMNS = [
    Column("host"),
    Column("pid", right=True),
    Column("state"),
    Column("busy", right=True),
    Column("parked", right=True),
    Column("stuck", right=True),
    Column("seen", right=True),
    Column("kinds", fit="fold"),
]


def _process_row(process: ProcessInfo) -> list[str]:
    return [
        printable(process.host),
        str(process.pid),
        _process_state(process),
        f"{process.status.get('busy', 0)} of {process.max_workers}",
        str(process.status.get("parked", 0)),
        str(process.status.get("stuck", 0)),
        f"{age(process.heartbeat_at)} ago",
        " ".join(process.kinds),
    ]


def _process_state(process: ProcessInfo) -> str:
    if _gone(process):
        return "gone"
    if process.status.get("draining"):
        return "draining"
    return "degraded" if process.status.get("degraded") else "running"


def _gone(process: ProcessInfo) -> bool:
    return process.lease_until < time.time()


def _as_dict(
    url: str,
    counts: Sequence[KindCounts],
    processes: Sequence[ProcessInfo],
    lonely: Sequence[KindCounts],
    lanes: Sequence[LaneInfo],
) -> dict[str, Any]:
    now = time.time()
    oldest = [kind.oldest_queued_at for kind in counts if kind.oldest_queued_at is not None]
    return {
        "queue": url,
        "states": {str(s): sum(kind.states.get(s, 0) for kind in counts) for s in JobState},
        "oldest_queued_seconds": now - min(oldest) if oldest else None,
        "kinds": [
            {
                "kind": kind.kind,
                "states": {str(state): kind.states.get(state, 0) for state in JobState},
                "oldest_queued_seconds": None
                if kind.oldest_queued_at is None
                else now - kind.oldest_queued_at,
            }
            for kind in counts
        ],
        "processes": [
            {
                "id": process.id,
                "host": process.host,
                "pid": process.pid,
                "state": _process_state(process),
                "kinds": list(process.kinds),
                "max_workers": process.max_workers,
                "busy": process.status.get("busy", 0),
                "parked": process.status.get("parked", 0),
                "stuck": process.status.get("stuck", 0),
                "joined_at": process.joined_at,
                "heartbeat_at": process.heartbeat_at,
                "lease_until": process.lease_until,
            }
            for process in processes
        ],
        "unhandled_kinds": [kind.kind for kind in lonely],
        "troubled_lanes": [lane.name for lane in lanes],
    }
