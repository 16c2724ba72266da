"""Claims from lanes where there are budgets: whose payer has spent one is passed by."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.adapters.sql import budgets
from penstock.adapters.sql.budgets import PausedLine
from penstock.adapters.sqlite.lane_claim import first
from penstock.adapters.sqlite.pick import pick
from penstock.adapters.sqlite.transaction import Transaction, run
from penstock.lanes.state import LaneState
from penstock.lanes.waiting import Picked


def choose(
    tx: Transaction,
    lanes: list[LaneState],
    kinds: Sequence[str],
    most: int,
    crashed: bool,
    later: float,
) -> tuple[list[Picked], float]:
    """The first whose payers may spend. And if there is nobody, when to look again: `later`, unless
    some are paused."""
    name = lanes[0].name

    async def in_line(rooms: dict[str, int]) -> dict[str, list[Picked]]:
        return {lane: first(tx, lane, kinds, room, crashed) for lane, room in rooms.items()}

    async def paused(line: PausedLine, most: int) -> list[Picked]:
        return pick(tx, line.ready, line.lane, (line.kind,), most)

    rooms, families = {name: most}, {name: lanes}
    found = run(budgets.choose(tx.shared, families, rooms, kinds, crashed, in_line, paused))
    return found.picked.get(name, []), found.later.get(name, later)
