"""Claims from lanes: a job and its permit together, or neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.adapters.postgres import lanes as store
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.lanes import States, family
from penstock.lanes import waiting
from penstock.lanes.state import LaneState
from penstock.lanes.waiting import LATER_SECONDS, LINES_PER_CLAIM, Picked, within
from penstock.model.job import Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import Lease, Want


async def claim_in_lanes(
    tx: Transaction, member: int, want: Want, lane_config: Callable[[str], LaneConfig]
) -> list[Lease]:
    """Lease up to `want.lanes` jobs that their lanes can take now, each with a start time."""
    kinds = list(want.kinds)
    names, _ = await _ready(tx, kinds)
    states = await store.lock(tx, names)
    unknown = [name for name in names if name not in states]
    if unknown:  # idle for so long that they were forgotten
        await store.configure(tx, unknown, lane_config)
        states = await store.lock(tx, names)
    if not states:
        return []
    # While the locks were waited for, another process may have served the same lines.
    due, budgets = await _ready(tx, kinds)
    claim = _Claim(tx, member, want, states, budgets)
    await claim.look([name for name in names if name in due])
    await claim.store()
    return claim.leases


async def _ready(tx: Transaction, kinds: Sequence[str]) -> tuple[list[str], bool]:
    """Lanes with lines that are due; and whether there are budgets, or jobs that one has paused."""
    rows = await tx.fetch("ready_lines", kinds, tx.now, LINES_PER_CLAIM)
    names = list(dict.fromkeys(lane for lane, _ in rows))[:LINES_PER_CLAIM]
    return names, any(budgets for _, budgets in rows)


class _Claim:
    """One look at the lines that are due. Lanes are worked on in memory, and stored at the end."""

    def __init__(
        self, tx: Transaction, member: int, want: Want, states: States, budgets: bool
    ) -> None:
        self._tx = tx
        self._member = member
        self._want = want
        self._kinds = list(want.kinds)
        self._states = states
        self._crashed = want.crashed
        self._budgets = budgets
        self._later: dict[str, float] = {}
        self._touched: dict[str, LaneState] = {}
        self._looks: list[tuple[str, float | None, str | None]] = []
        self._slots: list[tuple[str, int]] = []
        self._amounts: dict[int, str] = {}
        self._served: dict[tuple[str, int], float] = {}
        self.leases: list[Lease] = []

    async def look(self, names: Sequence[str]) -> None:
        now, rooms = self._tx.now, {}
        for name in names:
            lanes = family(self._states, name)
            if (most := waiting.room(lanes, self._want.lanes, now)) > 0:
                rooms[name] = waiting.choice(lanes[0], most)
        picked = await (self._choose if self._budgets else self._pick)(rooms)
        await self._book(picked)
        for name in names:
            if len(self.leases) >= self._want.lanes:
                return
            self._serve(family(self._states, name), picked.get(name, []))

    async def _book(self, picked: dict[str, list[Picked]]) -> None:
        """Find out what jobs reserve in lanes that count amounts."""
        for name, some in picked.items():
            lanes = family(self._states, name)
            if any(one.amounts is not None for one in lanes):
                from penstock.adapters.sql import amounts

                self._amounts |= await amounts.read(self._tx, some)

    async def _pick(self, rooms: dict[str, int]) -> dict[str, list[Picked]]:
        """The first in each line: jobs nobody else is just changing."""
        if not rooms:
            return {}
        names = list(rooms)
        counts = list(rooms.values())
        picked: dict[str, list[Picked]] = {}
        rows = await self._tx.fetch("pick", names, counts, self._kinds, self._crashed)
        for n, band, turn, resumes, *lease in rows:
            one = Picked(band, turn, Lease(*lease), resumes)
            picked.setdefault(names[n - 1], []).append(one)
        return picked

    async def _choose(self, rooms: dict[str, int]) -> dict[str, list[Picked]]:
        """The first in each line whose payers may spend."""
        from penstock.adapters.sql import budgets  # few queues have any
        from penstock.adapters.sql.budgets import PausedLine

        async def paused(line: PausedLine, most: int) -> list[Picked]:
            rows = await self._tx.fetch("pick_paused", *line, most)
            return [
                Picked(band, turn, Lease(*lease), resumes) for band, turn, resumes, *lease in rows
            ]

        if not rooms:
            return {}
        families = {name: family(self._states, name) for name in rooms}
        given = (families, rooms, self._kinds, self._crashed)
        picked, self._later = await budgets.choose(self._tx, *given, self._pick, paused)
        return picked

    def _serve(self, lanes: list[LaneState], picked: list[Picked]) -> None:
        lane, name, now = lanes[0], lanes[0].name, self._tx.now
        self._touched.update({one.name: one for one in lanes})
        most = waiting.room(lanes, self._want.lanes - len(self.leases), now)
        if most < 1:
            self._looks.append((name, *waiting.look_again(lanes, now)))
            return
        if not self._crashed:
            picked = [one for one in picked if not one.lease.crashes]
        picked = within(picked, self._ordinary())
        if not picked:
            # Nobody there, or only jobs this process may not take just now.
            self._looks.append((name, self._later.get(name, now + LATER_SECONDS), None))
            return
        picked = waiting.chosen(lane, picked)[:most]
        slack = self._want.slack
        if any(one.amounts is not None for one in lanes):
            from penstock.adapters.sql import amounts

            leases, waits_for = amounts.claimed(lanes, picked, self._amounts, now, slack)
        else:
            leases, waits_for = waiting.starts(lanes, picked, now, slack), None
        if leases and lane.open:
            lane.trial, lane.trial_holder = leases[0].seq, self._member
        self._slots += [(one.name, lease.seq) for lease in leases for one in lanes]
        self._served.update({(name, one.band): one.turn for one in picked[: len(leases)]})
        self._crashed = self._crashed and not any(lease.crashes for lease in leases)
        self.leases += leases
        self._looks.append((name, *waiting.look_again(lanes, now, waits_for)))

    def _ordinary(self) -> int | None:
        if self._want.ordinary is None:
            return None
        return self._want.ordinary - sum(one.priority > Priority.HIGH for one in self.leases)

    async def store(self) -> None:
        tx = self._tx
        if self.leases:
            seqs = sorted(lease.seq for lease in self.leases)
            await tx.execute("lease", seqs, self._member, tx.now)
            await store.take_slots(tx, self._member, self._slots)
            lanes, bands = zip(*self._served, strict=True)
            await tx.execute(
                "SELECT penstock.serve_1(s.lane, s.band, s.turn)"
                " FROM unnest($1::text[], $2::integer[], $3::float8[]) AS s (lane, band, turn)",
                lanes,
                bands,
                list(self._served.values()),
            )
        await store.save(tx, self._touched.values())
        if self._looks:
            looked, ats, waits = zip(*self._looks, strict=True)
            await tx.execute("look_again", looked, ats, waits, self._kinds, tx.now)
            await tx.execute("SELECT penstock.leave_lines_2($1, $2)", looked, self._kinds)
        await store.pass_on(tx, self._touched.values())
