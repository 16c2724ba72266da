"""Claims from lanes: a job and its permit together, or neither."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.adapters.sqlite import lanes as store
from penstock.adapters.sqlite.pick import pick
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.lanes import waiting
from penstock.lanes.state import LaneState
from penstock.lanes.waiting import LATER_SECONDS, LINES_PER_CLAIM, Picked, within
from penstock.model.job import Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Lease, Want

if TYPE_CHECKING:
    from penstock.model.amounts import Amounts


def claim_in_lanes(
    tx: Transaction,
    member: int,
    want: Want,
    lane_config: Callable[[str], LaneConfig],
    budgets: bool,
) -> list[Lease]:
    """Lease up to `want.lanes` jobs that their lanes can take now, each with a start time.
    `budgets`: there are some, or jobs that one has paused."""
    kinds = tuple(want.kinds)
    leases: list[Lease] = []
    crashed = want.crashed
    for name in _ready(tx, kinds):
        room = want.lanes - len(leases)
        if room <= 0:
            break
        ordinary = want.ordinary
        if ordinary is not None:
            ordinary -= sum(lease.priority > Priority.HIGH for lease in leases)
        lanes = store.with_parent(tx, name)
        if not lanes:  # it was idle for so long that it was forgotten
            store.configure(tx, [name], lane_config)
            lanes = store.with_parent(tx, name)
        leases += _claim(tx, member, lanes, kinds, room, crashed, ordinary, want.slack, budgets)
        crashed = crashed and not any(lease.crashes for lease in leases)
    return leases


def next_look(tx: Transaction, kinds: Sequence[str]) -> float | None:
    """When the next line of these kinds wants to be looked at."""
    found = [
        tx.execute(
            "SELECT min(wake_at) FROM lines WHERE kind = ? AND wake_at IS NOT NULL", (kind,)
        ).fetchone()[0]
        for kind in kinds
    ]
    return min((at for at in found if at is not None), default=None)


def _ready(tx: Transaction, kinds: Sequence[str]) -> list[str]:
    lines: list[tuple[float, str]] = []
    for kind in kinds:
        lines += tx.execute(
            "SELECT wake_at, lane FROM lines"
            " WHERE kind = ? AND wake_at IS NOT NULL AND wake_at <= ? ORDER BY wake_at LIMIT ?",
            (kind, tx.now, LINES_PER_CLAIM),
        ).fetchall()
    lines.sort()
    return list(dict.fromkeys(lane for _, lane in lines))[:LINES_PER_CLAIM]


def _claim(
    tx: Transaction,
    member: int,
    lanes: list[LaneState],
    kinds: Sequence[str],
    room: int,
    crashed: bool,
    ordinary: int | None,
    slack: float,
    budgets: bool,
) -> list[Lease]:
    lane, name = lanes[0], lanes[0].name
    store.end_lost_trials(tx, lanes)
    most = waiting.room(lanes, room, tx.now)
    if most < 1:
        _look_again(tx, lanes, kinds)
        store.pass_on(tx, lanes)
        return []
    choice, later = waiting.choice(lane, most), tx.now + LATER_SECONDS
    if budgets:
        from penstock.adapters.sqlite.budgets import choose  # few queues have any

        picked, later = choose(tx, lanes, kinds, choice, crashed, later)
    else:
        picked = first(tx, name, kinds, choice, crashed)
    picked = within(picked, ordinary)
    if not picked:
        # Nobody there, or only jobs this process may not take just now.
        _look_at(tx, name, kinds, later, None)
        store.pass_on(tx, lanes)
        return []
    picked = waiting.chosen(lane, picked)[:most]
    if any(one.amounts is not None for one in lanes):
        from penstock.adapters.sql import amounts

        read = run(amounts.read(tx.shared, picked))
        leases, waits_for = amounts.claimed(lanes, picked, read, tx.now, slack)
    else:
        leases, waits_for = waiting.starts(lanes, picked, tx.now, slack), None
    if leases:
        seqs = [lease.seq for lease in leases]
        tx.execute(sql("lease"), {"member": member, "now": tx.now, "seqs": json.dumps(seqs)})
        store.take_slots(tx, member, [(one.name, seq) for one in lanes for seq in seqs])
        if lane.open:
            lane.trial, lane.trial_holder = seqs[0], member
        _serve(tx, name, picked[: len(leases)])
    for one in lanes:
        store.save(tx, one)
    _look_again(tx, lanes, kinds, waits_for)
    store.pass_on(tx, lanes)
    return leases


def first(
    tx: Transaction, name: str, kinds: Sequence[str], most: int, crashed: bool
) -> list[Picked]:
    """The first in the lines of a lane, with at most one that has a crash on its record."""
    picked = pick(tx, 1, name, kinds, most)
    return pick(tx, 2, name, kinds, 1) + picked if crashed else picked


def _serve(tx: Transaction, name: str, picked: list[Picked]) -> None:
    for band, turn in {one.band: one.turn for one in picked}.items():
        tx.execute(sql("serve"), {"lane": name, "band": band, "turn": turn})


def _look_again(
    tx: Transaction, lanes: list[LaneState], kinds: Sequence[str], amount: Amounts | None = None
) -> None:
    """Say when the lane's lines are to be looked at next."""
    at, waits_for = waiting.look_again(lanes, tx.now, amount)
    _look_at(tx, lanes[0].name, kinds, at, waits_for)


def _look_at(
    tx: Transaction, name: str, kinds: Sequence[str], at: float | None, waits_for: str | None
) -> None:
    """Set when lines are looked at again, and forget those in which nobody waits."""
    tx.execute(
        "UPDATE lines SET wake_at = ?, waits_for = ?, since = ? WHERE lane = ?"
        " AND kind IN (SELECT value FROM json_each(?))",
        (at, waits_for, tx.now, name, json.dumps(list(kinds))),
    )
    tx.execute(
        "DELETE FROM lines WHERE lane = ? AND kind IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.ready > 0 AND jobs.ready IN (1, 2)"
        " AND jobs.lane = lines.lane AND jobs.kind = lines.kind)"
        " AND NOT EXISTS (SELECT 1 FROM paused_lines AS p"
        " WHERE p.lane = lines.lane AND p.kind = lines.kind)",
        (name, json.dumps(list(kinds))),
    )
