"""The ledger of a queue: what was spent, by whom, on what.

A charge is one request's. It is entered when something is reserved for the request, settled with
what it has used, and known by a name that no other request ever has. So whatever is told twice
counts once, and whoever has lost the lease of its job may still tell: it was spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple, cast, get_args

from penstock.errors import ValidationError
from penstock.model.budget import BudgetState, payers

DAY = 86400
MAX_ROWS = 1000
"""Of one look at the ledger; the largest."""
LAST_DAY = 2**31 - 1

UsageBy = Literal["day", "tenant", "task", "job", "kind", "lane", "model"]
IN_DETAIL = ("task", "job")
"""What only the single charges tell, for as long as they are kept; sums of days are for ever."""


class Payer(NamedTuple):
    """On whose account a request is made. What is not known of it is empty."""

    tenant: str
    task: str = ""
    """The log of the job: that of a research task, an answer, a document."""
    job: str = ""
    kind: str = ""


class Charge(NamedTuple):
    """An entry of one request."""

    id: str
    at: float
    payer: Payer
    lane: str
    model: str
    tokens: int
    input_tokens: int
    output_tokens: int
    """These two are less than all where it was not told which is which."""
    cost: int | None
    """In millionths of the currency. None: its price is unknown."""
    reserved: bool = False
    """So much is reserved: what it has used is not told yet, and if it never is, this stands."""
    void: bool = False
    """The request was not made: what is reserved for it is not spent."""

    @property
    def day(self) -> int:
        """Since 1970, in UTC."""
        return int(self.at // DAY)

    @property
    def budgets(self) -> list[str]:
        """Whose budgets it is on."""
        return payers(self.payer.tenant, self.payer.task)


class Charged(NamedTuple):
    """The result of entering charges."""

    refused: Mapping[str, BudgetState]
    """Reservations, by their names, that were not entered, and the budget that is spent."""
    budgets: bool
    """Whether there are any budgets."""
    told: Sequence[BudgetState]
    """Budgets of which these charges have spent most, or all."""


class UsageQuery(NamedTuple):
    """A question to the ledger."""

    by: UsageBy = "day"
    tenant: str | None = None
    """None: of all tenants."""
    since: int = 0
    until: int = LAST_DAY
    """Days since 1970, both included."""


class UsageSum(NamedTuple):
    """Sum of what one tenant has spent, or was spent on one model, and so on."""

    name: str
    """Of what it is the sum: a day is written 2026-01-31. Empty: not known."""
    requests: int
    tokens: int
    input_tokens: int
    output_tokens: int
    cost: int
    """In millionths, of those whose price is known."""
    unpriced: int
    """How many requests are of unknown price."""
    reserved: int
    """How many have not told their use, and are counted with what was reserved for them."""


def folded(charges: Iterable[Charge]) -> list[Charge]:
    """What is to be done in the end, one for each request and in the order of their names."""
    last: dict[str, Charge] = {}
    for one in charges:
        before = last.get(one.id)
        if before is None or (before.reserved and not one.reserved) or before.void:
            # Where it settles a reservation of the same batch, the day is that of the reservation.
            last[one.id] = one if before is None else one._replace(at=before.at)
    return [last[name] for name in sorted(last)]


def day_name(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()


def usage_query(
    by: str, tenant: str | None, since: date | str | None, until: date | str | None
) -> UsageQuery:
    """ValidationError for what cannot be asked."""
    if by not in get_args(UsageBy):
        raise ValidationError(f"usage is by {', '.join(get_args(UsageBy))}, not by {by!r}")
    first = 0 if since is None else _day_number("since", since)
    last = LAST_DAY if until is None else _day_number("until", until)
    return UsageQuery(cast(UsageBy, by), tenant, first, last)


def _day_number(name: str, day: date | str) -> int:
    try:
        found = date.fromisoformat(day) if isinstance(day, str) else day
    except ValueError:
        raise ValidationError(f"{name} must be a day such as 2026-01-31, not {day!r}") from None
    return (date(found.year, found.month, found.day) - date(1970, 1, 1)).days
