"""`app.budgets`: what tenants and tasks may spend."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import BudgetNotFound
from penstock.model.budget import BudgetConfig, BudgetState, Period, check_payer
from penstock.ports.queue import JobQueue


class Budgets:
    """Sets, lists and removes budgets. A payer is `tenant:NAME` or `task:TENANT/ID`."""

    def __init__(self, queue: JobQueue, configured: Mapping[str, BudgetConfig]) -> None:
        self._queue = queue
        self._configured = configured

    async def list(self) -> list[BudgetState]:
        """All budgets, by payer, and what is spent or reserved of them."""
        return await self._queue.budgets()

    async def get(self, payer: str) -> BudgetState:
        """One budget; BudgetNotFound if the payer has none."""
        for state in await self._queue.budgets():
            if state.payer == payer:
                return state
        raise BudgetNotFound(payer)

    async def set(
        self,
        payer: str,
        *,
        cost: float | None = None,
        tokens: int | None = None,
        per: Period = "day",
        timezone: str = "UTC",
    ) -> BudgetState:
        """Give a payer a budget, or another one. What is spent in this period stays spent; what it
        has room for now goes on at once."""
        given = {"cost": cost, "tokens": tokens, "per": per, "timezone": timezone}
        await self._queue.set_budget(check_payer(payer), BudgetConfig.parse(given))
        return await self.get(payer)

    async def remove(self, payer: str) -> None:
        """Remove a budget: what it has paused goes on. BudgetNotFound if there is none."""
        if not await self._queue.set_budget(payer, None):
            raise BudgetNotFound(payer)

    async def apply(self) -> None:
        """Set the budgets configured here that are not as configured. Done when workers start. One
        that was set otherwise meanwhile stays so, until its configuration changes."""
        known = {state.payer: state.configured for state in await self._queue.budgets()}
        for payer, config in self._configured.items():
            if known.get(payer) != (text := repr(config)):
                await self._queue.set_budget(payer, config, text)
