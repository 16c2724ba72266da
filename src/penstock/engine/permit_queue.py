"""The queue of a process's requests for permits in one lane, and when to retry them."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.engine.requests import MOMENT
from penstock.lanes.limits import AHEAD_SECONDS
from penstock.model.amounts import Amounts
from penstock.ports.lanes import RATE, Busy, Permit
from penstock.ports.ledger import Payer

FIRST_WIDTH = 32
"""How many are asked for at once where nothing is known of the lane yet."""
FULL_SECONDS = 0.25
"""When to ask again for a slot at the latest: another process may have freed one unheard."""


class PermitHolder:
    """On whose behalf permits are asked for. This one holds no slot: a service is such a one."""

    number = 0
    """No other asker of this process has it."""
    token = 0
    id = ""
    """With number and token, the lease of a job."""
    kind = ""
    """Of that job."""
    question = False
    """Somebody waits for what it asks: jobs leave it a slot, and it waits in a line of its own."""
    slot_lane = ""
    """The lane that the slot is in which it holds already."""
    limit: float | None = None
    """Seconds a request may take where its lane says nothing."""
    again = False
    """Its request was answered 429 a moment ago: the lane learns of that before it is asked."""

    @property
    def payer(self) -> Payer:
        """On whose account it asks."""
        return Payer("")

    def take_slot(self, lane: str) -> bool:
        """Use the slot that the asker holds already for a request in `lane`, if it is of use there
        and no other of its requests has it. It goes back with `free_slot`."""
        return False

    def free_slot(self) -> None:
        """The request that used it is over."""

    def shares_slot(self, lane: str) -> bool:
        """Whether a slot it holds would do for `lane`, once its other requests are over."""
        return False

    def waits(self, lane: str) -> None:
        """A request of it has to wait for its turn."""

    def goes_on(self) -> None:
        """That request waits no more."""

    async def back(self, lane: str) -> None:
        """A request of it that had to wait is over."""


@dataclass(slots=True, eq=False)
class Turn:
    """One request on its way to a permit."""

    asker: PermitHolder
    end: float = math.inf
    """No permit is of use whose start is later."""
    answer: asyncio.Future[Permit] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    waits: bool = False
    own: bool = False
    """It goes by the slot that its asker holds."""
    busy: Busy | None = None
    """Why it has no permit yet."""
    amount: Amounts | None = None
    """What it reserves of what its lane counts."""
    model: str = ""
    charged: bool = False
    """It is entered in the ledger before the request is made."""

    def wait(self, lane: str) -> None:
        if not self.waits and not self.answer.done():
            self.waits = True
            self.asker.waits(lane)

    def leave_slot(self) -> None:
        if self.own:
            self.own = False
            self.asker.free_slot()


class PermitQueue:
    """Askers take turns in it, each with its oldest request. Few stand in front: as many are asked
    for as were granted the last time, and one more."""

    def __init__(self, lane: str, slot_only: bool) -> None:
        self.lane = lane
        self.slot_only = slot_only
        self.look_at = 0.0
        """Not before this time is the queue asked."""
        self.full = ""
        """The lane, this or its parent, that has no slot left; '': something else is waited for."""
        self.timed = False
        """It waits for the rate: nothing but time can help."""
        self._came_first = False
        self._asked_at = 0.0
        self._width = FIRST_WIDTH
        self._overtaken = False
        self._turns: OrderedDict[int, deque[Turn]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Turn]:
        return (turn for turns in self._turns.values() for turn in turns)

    def ahead(self, lag: float) -> float:
        """How far ahead of its start a permit may be granted, where the answer takes `lag`. Jobs in
        line are started up to AHEAD_SECONDS ahead, and come first; who was overtaken by them comes
        before the next."""
        return lag + (2 * AHEAD_SECONDS if self._overtaken else AHEAD_SECONDS)

    def add(self, turn: Turn, *, first: bool = False) -> None:
        number = turn.asker.number
        turns = self._turns.setdefault(number, deque())
        if first:
            turns.appendleft(turn)
            self._turns.move_to_end(number, last=False)
        else:
            turns.append(turn)
        self._length += 1

    def remove(self, turn: Turn) -> bool:
        """Whether it was in line; one that is just asked for is not."""
        turns = self._turns.get(turn.asker.number)
        if turns is None or turn not in turns:
            return False
        turns.remove(turn)
        self._length -= 1
        if not turns:
            del self._turns[turn.asker.number]
        return True

    def take(self, now: float) -> list[Turn]:
        """Those that are to be asked for now."""
        self._asked_at = now
        taken: list[Turn] = []
        while self._turns and len(taken) < self._width:
            number, turns = next(iter(self._turns.items()))
            taken.append(turns.popleft())
            if turns:
                self._turns.move_to_end(number)
            else:
                del self._turns[number]
        self._length -= len(taken)
        return taken

    def learn(self, granted: int, refused: list[Busy], now: float, poll: float, lag: float) -> None:
        """What came of asking: when to ask again, and for how many."""
        if granted:
            self._overtaken = False
        if not refused:
            self._width = min(2 * self._width, 1000)
            self.full, self.timed = "", False
            return
        self._overtaken = not granted and self.timed
        self._width = granted + 1
        busy = refused[0]
        self.timed = busy.until is not None and busy.why == RATE
        self.full = busy.lane if busy.until is None else ""
        if busy.until is None:
            at = now + min(poll, FULL_SECONDS)
        else:
            lead = self.ahead(lag) if self._overtaken else lag + AHEAD_SECONDS / 2
            at = min(busy.until - lead, now + poll)
        self.look_at = max(at, now + MOMENT)

    def next_turn(self) -> bool:
        """Whether the slot that is freed next is for it, and not for jobs that have not begun."""
        self._came_first = self.slot_only or not self._came_first
        return self._came_first

    def look(self, pause: float) -> None:
        """Something has changed: ask soon, but not without a pause."""
        if not self.timed:
            self.look_at = min(self.look_at, self._asked_at + pause)
