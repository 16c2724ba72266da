"""Budgets in a database: their rows, and the lines of jobs that they pause."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from penstock.adapters.sql.dialect import Row, Sql
from penstock.lanes import budgets as rules
from penstock.lanes.state import LaneState
from penstock.lanes.waiting import Picked
from penstock.model.budget import BUDGET, BudgetConfig, BudgetState, payers
from penstock.ports.ledger import Charge, Charged
from penstock.ports.queue import Topic

LINES_MOST = 50
"""Lines of payers who may spend again that are looked at together; others when these are empty."""
ROUNDS = 4
PAUSE_MOST = 250
"""Jobs that are looked at in one go for one that may run, and so paused at most. Four times this
many in a claim: nobody else waits long for the lane."""


Woken = Callable[[Sql], Awaitable[None]] | None
Change = Callable[[Callable[[Sql], Awaitable[Any]]], Awaitable[Any]]


class LockedBudgets:
    """The budgets that charges are on, locked."""

    def __init__(self, tx: Sql, states: Mapping[str, BudgetState], opened: list[str]) -> None:
        self._tx = tx
        self._states = states
        self._closed = {state.payer for state in states.values() if state.reached}
        self._opened = opened
        self._refused: dict[str, BudgetState] = {}
        self._changed: set[str] = set()

    @classmethod
    async def of(cls, tx: Sql, charges: Iterable[Charge]) -> LockedBudgets:
        names = sorted({payer for one in charges for payer in one.budgets})
        rows = await tx.fetch("lock_budgets", payers=names)
        states = {row["payer"]: state_of(row) for row in rows}
        over = [state for state in states.values() if rules.roll(state, tx.now)]
        found = cls(tx, states, [state.payer for state in over])
        found._changed.update(found._opened)
        return found

    def admitted(self, charges: Sequence[Charge]) -> list[Charge]:
        """Those that are to be entered. What was spent is; what is only reserved, if there was
        something left."""
        entered = []
        for one in charges:
            closed = rules.first_closed(self._states, one.budgets, self._tx.now)
            if one.reserved and closed is not None:
                self._refused[one.id] = closed
            else:
                entered.append(one)
                self._spend(one, one.at, one.tokens, one.cost or 0)
        return entered

    def take_back(self, charges: Iterable[Charge]) -> None:
        """These were not entered after all."""
        for one in charges:
            self._spend(one, one.at, -one.tokens, -(one.cost or 0))

    def settled(self, one: Charge, before: Charge) -> None:
        """What was reserved is used."""
        used = (0, 0) if one.void else (one.tokens, one.cost or 0)
        self._spend(one, before.at, used[0] - before.tokens, used[1] - (before.cost or 0))

    def _spend(self, one: Charge, at: float, tokens: int, cost: int) -> None:
        for payer in one.budgets:
            if payer in self._states:
                rules.spend(self._states[payer], at, tokens, cost, one.lane)
                self._changed.add(payer)

    async def save(self) -> tuple[Charged, Woken]:
        """Store them; what came of it, and what lets those go on who may spend again."""
        changed = [self._states[payer] for payer in sorted(self._changed)]
        told = [state for state in changed if rules.warns(state)]
        if changed:
            await self._tx.execute_many("save_budget", [row_of(state) for state in changed])
        opened = [
            *self._opened,
            *(one.payer for one in changed if one.payer in self._closed and not one.reached),
        ]
        woken = partial(wake, names=list(dict.fromkeys(opened))) if opened else None
        return Charged(self._refused, True, told), woken


async def read(tx: Sql) -> list[BudgetState]:
    """See `penstock.ports.queue.JobQueue.budgets`."""
    states = [state_of(row) for row in await tx.fetch("all_budgets")]
    for state in states:
        rules.roll(state, tx.now)
    return states


async def set_budget(
    change: Change, payer: str, config: BudgetConfig | None, configured: str | None
) -> bool:
    """See `penstock.ports.queue.JobQueue.set_budget`."""
    found = await change(lambda tx: _store(tx, payer, config, configured))
    await change(partial(wake, names=[payer]))
    return bool(found)


async def _store(tx: Sql, payer: str, config: BudgetConfig | None, configured: str | None) -> bool:
    """Whether it had one."""
    if config is None:
        return bool(await tx.execute("drop_budget", payer=payer))
    new = rules.fresh(payer, config, tx.now)
    new.configured = configured
    if await tx.execute("add_budget", **row_of(new)):
        return False
    state = state_of(await tx.one("lock_budgets", payers=[payer]))
    rules.change(state, config, tx.now)
    state.configured = configured or state.configured
    await tx.execute("save_budget", **row_of(state))
    return True


async def wake(tx: Sql, names: Sequence[str]) -> None:
    """These payers may spend again: what waits for that is looked at now. In a transaction of its
    own: who claims locks lanes, and lines, in another order."""
    for payer in sorted(names):  # jobs first, as who claims locks them
        await tx.execute("wake_jobs", lane=BUDGET + payer, now=tx.now)
    await tx.execute("wake_paused", payers=list(names), now=tx.now)
    tx.wake(Topic.READY)


class PausedLine(NamedTuple):
    """A line of jobs that a budget has paused, or had."""

    lane: str
    kind: str
    ready: int


Pick = Callable[[dict[str, int]], Awaitable[dict[str, list[Picked]]]]
PickPaused = Callable[[PausedLine, int], Awaitable[list[Picked]]]


class Choice(NamedTuple):
    picked: dict[str, list[Picked]]
    later: dict[str, float]
    """Lanes with nobody who may run: when to look again."""


async def choose(
    tx: Sql,
    families: Mapping[str, list[LaneState]],
    rooms: dict[str, int],
    kinds: Sequence[str],
    crashed: bool,
    pick: Pick,
    pick_paused: PickPaused,
) -> Choice:
    """The first in the lines of lanes (and how many of each) whose payers may spend. The others are
    paused: a claim that has met them once finds those behind them."""
    lines: dict[str, list[PausedLine]] = {}
    until: dict[str, float] = {}
    for lane, kind, ready, end in await tx.fetch(
        "paused_lines", lanes=list(rooms), kinds=list(kinds), now=tx.now
    ):
        if end is not None:
            until[lane] = min(until.get(lane, end), end)
        elif len(lines.setdefault(lane, [])) < LINES_MOST and (crashed or ready % 2):
            lines[lane].append(PausedLine(lane, kind, ready))
    wanted, found = dict(rooms), dict[str, list[Picked]]()
    for _ in range(ROUNDS):
        found |= await _pick(tx, wanted, lines, pick, pick_paused)
        paused = await _pause(tx, families, {lane: found.get(lane, []) for lane in wanted})
        for lane in paused:
            found[lane] = [one for one in found[lane] if one.lease.seq not in paused[lane].seqs]
            until[lane] = min(until.get(lane, paused[lane].until), paused[lane].until)
        wanted = {lane: PAUSE_MOST for lane in paused if len(found[lane]) < rooms[lane]}
        if not wanted:
            break
    picked = {lane: _first(some, rooms[lane], crashed) for lane, some in found.items()}
    soon = {lane: min(end, tx.now + rules.LOOK_SECONDS) for lane, end in until.items()}
    empty = [lane for lane in soon if not picked.get(lane)]
    later = {lane: tx.now if lane in wanted else soon[lane] for lane in empty}
    return Choice(picked, later)


async def _pick(
    tx: Sql,
    wanted: dict[str, int],
    lines: Mapping[str, list[PausedLine]],
    pick: Pick,
    pick_paused: PickPaused,
) -> dict[str, list[Picked]]:
    """The first in the lines of lanes and in those of payers who may spend again."""
    found = await pick(wanted)
    for lane, most in wanted.items():
        for line in lines.get(lane, ()):
            some = await pick_paused(line, most)
            found[lane] = [*found.get(lane, []), *some]
            if not some:
                await tx.execute("drop_paused_line", **line._asdict())
    return found


def _first(some: list[Picked], most: int, crashed: bool) -> list[Picked]:
    """In the order of the line: one with a crash on its record, if there may be one; others."""
    some.sort(key=lambda one: (not one.lease.crashes, one.band, one.turn, one.lease.seq))
    first = [one for one in some if one.lease.crashes][: 1 if crashed else 0]
    return [*first, *(one for one in some if not one.lease.crashes)][: most + len(first)]


class _Paused(NamedTuple):
    seqs: set[int]
    until: float


async def _pause(
    tx: Sql, families: Mapping[str, list[LaneState]], picked: Mapping[str, list[Picked]]
) -> dict[str, _Paused]:
    """Pause the jobs that may not run, by lane."""
    names = {payer for some in picked.values() for one in some for payer in _payers(one)}
    rows = await tx.fetch("closed_budgets", payers=sorted(names), now=tx.now) if names else []
    closed = {row["payer"]: (row["number"], row["ends"], json.loads(row["lanes"])) for row in rows}
    moved: dict[int, list[int]] = {}
    lines: set[tuple[str, str, int, str]] = set()
    paused: dict[str, _Paused] = {}
    for lane, some in picked.items() if closed else ():
        counts = any(one.amounts is not None for one in families[lane])
        own = {one.name for one in families[lane]}
        for one in some:
            for payer in _payers(one):
                number, ends, spent_in = closed.get(payer, (0, 0.0, ()))
                if number and (counts or not own.isdisjoint(spent_in)):
                    moved.setdefault(number, []).append(one.lease.seq)
                    ready = 2 * number + (2 if one.lease.crashes else 1)
                    lines.add((lane, one.lease.kind, ready, payer))
                    before = paused.get(lane, _Paused(set(), ends))
                    before.seqs.add(one.lease.seq)
                    paused[lane] = before._replace(until=min(before.until, ends))
                    break
    for number, seqs in moved.items():
        await tx.execute("pause_jobs", number=number, seqs=sorted(seqs))
    for lane, kind, ready, payer in sorted(lines):
        await tx.execute("add_paused_line", lane=lane, kind=kind, ready=ready, payer=payer)
    return paused


def _payers(one: Picked) -> list[str]:
    return payers(one.lease.tenant, one.lease.log)


async def reasons(tx: Sql, jobs: Sequence[Row]) -> dict[int, str]:
    """By seq, why paused ones of these jobs (rows of `job_columns`) are paused."""
    readies = sorted({job["ready"] for job in jobs if job["ready"] > 2})
    if not readies:
        return {}
    rows = await tx.fetch("paused_budgets", readies=readies, now=tx.now)
    names = {(lane, kind, ready): payer for lane, kind, ready, payer in rows}
    states = {state.payer: state for state in await read(tx)} if names else {}
    found = {}
    for job in jobs:
        payer = names.get((job["lane"], job["kind"], job["ready"]))
        if payer is not None:
            found[job["seq"]] = rules.why(states[payer])
    return found


def state_of(row: Row) -> BudgetState:
    values = {name: row[name] for name in BudgetState.__dataclass_fields__}
    return BudgetState(**{**values, "lanes": json.loads(row["lanes"])})


def row_of(state: BudgetState) -> dict[str, Any]:
    values = {name: getattr(state, name) for name in BudgetState.__dataclass_fields__}
    text = json.dumps(state.lanes)
    flags = {"reached": int(state.reached)}
    return {**values, **flags, "lanes": text}
