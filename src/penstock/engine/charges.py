"""Charges requests in the ledger: reserved before they are made, settled when they have ended.
Where a budget is spent they are not made.

Every use of tokens or money comes by here: permits and starts of jobs, model calls of services and
of `ctx.http`. Requests that say nothing of either do not.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from penstock.engine.settler import Settler
from penstock.errors import QueueError
from penstock.lanes.amounts import used_by
from penstock.lanes.budgets import spent_of, why
from penstock.model.amounts import MOST, NOTHING, Amounts
from penstock.model.budget import BudgetState
from penstock.model.prices import PriceTable, price_at
from penstock.ports.bill import Bill
from penstock.ports.ledger import Charge, Payer
from penstock.ports.queue import Exchange, JobQueue, Lease, Outcome, Settlement
from penstock.text.normalize import storable

log = logging.getLogger("penstock")

MODEL_LENGTH = 200
MOST_COST = 10**15
"""Millionths. A provider that says more of one request, or of its tokens, is not believed: sums
have to stay numbers that every queue can store."""


class Charges:
    """Gives the settler what is to be charged, and the queue what is reserved."""

    def __init__(self, queue: JobQueue, prices: PriceTable, settler: Settler) -> None:
        self._queue = queue
        self._prices = prices
        self._settler = settler

    def entered_first(self, amount: Amounts | None, model: str, lane: str) -> bool:
        """Whether a request is entered before it is made: if it reserves something and, where
        there may be budgets, if it is known to cost something."""
        if any(amount or ()):
            return True
        spends = bool(model) or lane in self._prices or lane in self._settler.spent_in
        return self._settler.budgets and spends

    def priced(self, amount: Amounts, model: str, lane: str) -> Amounts:
        """An amount with what it costs, if that is not said and its price is known."""
        if amount.cost or not self._prices:
            return amount
        cost = _price(self._prices, amount, model, lane, self._queue.now())
        return amount if cost is None else amount._replace(cost=cost)

    async def reserve(self, charges: Sequence[Charge]) -> Mapping[str, BudgetState]:
        """Enter what is reserved, before the requests are made. Those that may not be made, by the
        name of the charge, and the budget that is spent. While the queue cannot be reached they are
        made all the same: it is told with the next trip."""
        try:
            return await enter(charges, self._queue, self._settler, soft=True)
        except QueueError:
            for one in charges:
                self._settler.charge(one)
            return {}

    def ended(
        self, name: str, payer: Payer, lane: str, at: float, bill: Bill, *, reserved: bool
    ) -> Amounts | None:
        """Charge what a request has used; that, with its cost. None: it is not known."""
        spent = bill.spent
        if spent is None or (bill.empty and not reserved):
            return spent
        at = at or self._queue.now()
        cost = bill.cost
        if cost is None:
            cost = _price(self._prices, spent, bill.model, lane, at)
        if cost is None:
            cost = spent.cost or None
        charge = charge_of(name, payer, lane, bill.model, at, spent, cost)
        self._settler.charge(charge._replace(void=bill.empty))
        return spent if cost is None else spent._replace(cost=cost)

    def void(self, charge: Charge) -> None:
        """The request is not made."""
        self._settler.charge(charge._replace(reserved=False, void=True))


async def enter(
    charges: Sequence[Charge], queue: JobQueue, settler: Settler, *, soft: bool = False
) -> Mapping[str, BudgetState]:
    """Enter charges, and log of budgets that are spent, or nearly so. Reservations that were
    refused, by name, and the budget that is spent."""
    charged = await queue.charge(charges, soft=soft)
    settler.budgets = charged.budgets
    for state in charged.told:
        if state.reached:
            log.warning("%s: what would spend is paused", why(state))
        else:
            log.warning("budget %s: %s (%.0f %%)", state.payer, spent_of(state), 100 * state.share)
    return charged.refused


async def start_all(
    exchange: Exchange, queue: JobQueue, prices: PriceTable, settler: Settler
) -> Exchange:
    """Reserve what runs may use, but for the jobs whose budget others have spent since they were
    claimed: these go back."""
    refused = await Charges(queue, prices, settler).reserve(started(exchange.leases, prices))
    for lease in exchange.leases:
        if start_name(lease) in refused:
            settler.add(Settlement(lease, Outcome.HANDED_BACK), None)
    leases = [lease for lease in exchange.leases if start_name(lease) not in refused]
    return exchange._replace(leases=leases)


def charge_of(
    name: str, payer: Payer, lane: str, model: str, at: float, amount: Amounts, cost: int | None
) -> Charge:
    tokens, sent, said, _ = amount
    if sent + said > tokens:  # they are bounds: it was not told which is which
        sent = said = 0
    if cost is not None:
        cost = min(cost, MOST_COST)
    model = storable(" ".join(model.split()))[:MODEL_LENGTH]
    tokens, sent, said = (min(one, MOST) for one in (tokens, sent, said))
    return Charge(name, at, payer, lane, model, tokens, sent, said, cost)


def reservation(
    name: str, payer: Payer, lane: str, model: str, at: float, amount: Amounts
) -> Charge:
    """An amount that carries its cost, if that is known."""
    charge = charge_of(name, payer, lane, model, at, amount, amount.cost or None)
    return charge._replace(reserved=True)


def start_name(lease: Lease) -> str:
    """The name of what is charged for the start of a run."""
    return f"{lease.id}:{lease.token}"


def payer_of(lease: Lease) -> Payer:
    return Payer(lease.tenant, lease.log or "", lease.id, lease.kind)


def started(leases: Sequence[Lease], prices: PriceTable) -> list[Charge]:
    """What runs reserve with their starts, in lanes that count amounts."""
    return [
        _start(lease, lease.reserved, prices)
        for lease in leases
        if lease.reserved and any(lease.reserved) and lease.refused is None
    ]


def not_started(settlement: Settlement) -> list[Charge]:
    """What was reserved for a run that did not begin."""
    lease = settlement.lease
    if not lease.reserved or used_by(settlement) != NOTHING:
        return []
    return [_start(lease, lease.reserved, {})._replace(reserved=False, void=True)]


def _start(lease: Lease, amount: Amounts, prices: PriceTable) -> Charge:
    cost = amount.cost or _price(prices, amount, "", lease.lane, lease.start_at)
    amount = amount._replace(cost=cost or 0)
    name, payer = start_name(lease), payer_of(lease)
    return reservation(name, payer, lease.lane, "", lease.start_at, amount)


def _price(prices: PriceTable, amount: Amounts, model: str, lane: str, at: float) -> int | None:
    price = price_at(prices, model, lane, at) if prices else None
    if price is None:
        return None
    tokens, sent, said, _ = amount
    return price.cost(tokens, *((0, 0) if sent + said > tokens else (sent, said)))
