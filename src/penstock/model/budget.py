"""Budgets: how much a tenant or a task may spend in a period."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.errors import ConfigError, ValidationError
from penstock.model.amounts import MICRO
from penstock.model.section import check_fields, setting

MOST_TOKENS = 10**15
MOST_COST = 1e9
Period = Literal["hour", "day", "week", "month", "total"]
UTC = "UTC"
FOREVER = 9e15
"""Seconds since 1970: the end of a period that has none."""
_PAYER = re.compile(r"(tenant:[^\x00-\x1f]{1,240}|task:[^/\x00-\x1f]{1,240}/[^\x00-\x1f]{1,512})")
BUDGET = "budget "
"""Before a payer's name, where a lane's could stand: what a job waits for."""


@dataclass(slots=True, frozen=True)
class BudgetConfig:
    """A budget as configured: how much money, tokens or both a tenant or a task may spend."""

    cost: float | None = setting(None, least=0, most=MOST_COST)
    """In the currency of your prices."""
    tokens: int | None = setting(None, least=0, most=MOST_TOKENS)
    per: Period = "day"
    """When it begins anew. A week begins on Monday; `total` never does."""
    timezone: str = UTC
    """The time zone whose days, weeks and months these are: `Europe/Berlin`."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.cost is None and self.tokens is None:
            raise ConfigError("a budget needs cost, tokens or both", setting="cost")
        if self.timezone != UTC:
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(self.timezone)
            except (KeyError, ValueError, OSError):
                raise ConfigError(
                    f"{self.timezone!r} is no time zone such as Europe/Berlin", setting="timezone"
                ) from None

    @property
    def cost_limit(self) -> int | None:
        """In millionths."""
        return None if self.cost is None else math.floor(self.cost * MICRO + 0.5)

    @classmethod
    def parse(cls, value: BudgetConfig | Mapping[str, Any]) -> BudgetConfig:
        """ValidationError for what is no budget."""
        if isinstance(value, BudgetConfig):
            return value
        names = ("cost", "tokens", "per", "timezone")
        unknown = [name for name in value if name not in names]
        if unknown:
            raise ValidationError(f"{unknown[0]!r} is not one of {', '.join(names)}")
        try:
            return cls(**value)
        except (ConfigError, TypeError) as error:
            raise ValidationError(str(error)) from None


@dataclass(slots=True)
class BudgetState:
    """A budget, and what is spent of it in this period."""

    payer: str
    tokens_limit: int | None
    cost_limit: int | None
    """In millionths, as all money here. None: no limit."""
    per: str
    timezone: str
    begins: float
    """What began earlier does not count. Where it was set within a period: when it was."""
    ends: float
    tokens: int = 0
    cost: int = 0
    """Spent, or reserved."""
    warned: int = 0
    """What somebody was told of in this period: 1: most of it is spent; 2: all of it."""
    lanes: list[str] = field(default_factory=list)
    """In which something was spent of it."""
    configured: str | None = None
    """As the settings of a process had it when they set it last; None: they never did."""

    @property
    def reached(self) -> bool:
        """Whether as much as it allows is spent or reserved."""
        tokens, cost = self.tokens_limit, self.cost_limit
        return (tokens is not None and self.tokens >= tokens) or (
            cost is not None and self.cost >= cost
        )

    @property
    def share(self) -> float:
        """Spent of the limit that is nearest; 1 is all of it."""
        parts = ((self.tokens, self.tokens_limit), (self.cost, self.cost_limit))
        found = [1.0 if not limit else spent / limit for spent, limit in parts if limit is not None]
        return max(found, default=0.0)

    def closed(self, now: float) -> bool:
        """Whether nothing may be begun that spends of it."""
        return self.reached and now < self.ends


def check_payer(payer: str) -> str:
    """ValidationError unless it names a tenant or a task."""
    if not _PAYER.fullmatch(payer):
        raise ValidationError(f"a budget is of tenant:NAME or task:TENANT/ID, not of {payer!r}")
    return payer


def check_payers(budgets: Iterable[str]) -> None:
    """ConfigError for a name that is none."""
    for payer in budgets:
        try:
            check_payer(payer)
        except ValidationError as error:
            raise ConfigError(str(error), setting=f"budgets.{payer}") from None


def payers(tenant: str, task: str | None) -> list[str]:
    """Whose budgets a request is on."""
    return [f"tenant:{tenant}", tasks_of(tenant) + task] if task else [f"tenant:{tenant}"]


def tasks_of(tenant: str) -> str:
    """What the payers of a tenant's tasks begin with: a slash is written %2F in its name."""
    return "task:" + tenant.replace("%", "%25").replace("/", "%2F") + "/"
