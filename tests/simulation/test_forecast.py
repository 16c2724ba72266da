"""Forecasts against what then happened: the real engine and queue, on the virtual clock."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock import Job, JobContext, Penstock, Priority
from penstock.forecast.forecast import Forecast
from penstock.testing import simulate, simulation

BACKLOGS = 20
GOOD = 18
"""Of these the finish was forecast within 15 %."""
FINISH, COST = 0.15, 0.10
HISTORY = 20
"""Jobs of each kind that have run before."""
RENEWED = 6.0
"""Seconds after which processes have told how they are."""


@dataclass
class Kind:
    """A kind of jobs: how long they take, and what they reserve and use."""

    name: str
    jobs: int
    seconds: float
    spread: float
    lane: str | None = None
    tokens: tuple[int, int] = (0, 0)
    fails: float = 0.0
    later: float = 0.0


@dataclass
class MixedBacklog:
    """Lanes and kinds that a seed has drawn, a forecast of them, and what happened."""

    seed: int
    lanes: dict[str, dict[str, Any]] = field(default_factory=dict)
    kinds: list[Kind] = field(default_factory=list)
    forecast: Forecast | None = None
    took: float = 0.0
    cost: float = 0.0

    def __post_init__(self) -> None:
        chance = self.chance = random.Random(self.seed)
        self.share = chance.uniform(0.42, 0.9)
        lanes, kinds = self.lanes, self.kinds
        pick = chance.randint
        lanes["slots"] = {"min_interval_seconds": 0.0, "max_parallel": pick(2, 5)}
        lanes["rate"] = {
            "requests_per_interval": pick(3, 12),
            "interval_seconds": 2.0,
            "max_parallel": 8,
        }
        lanes["parent"] = {"min_interval_seconds": 0.1, "max_parallel": 3}
        for child in ("left", "right"):
            lanes[child] = {"min_interval_seconds": 0.0, "max_parallel": 2, "parent": "parent"}
        lanes["tokens"] = {
            "tokens_per_interval": pick(2000, 5000),
            "interval_seconds": 10.0,
            "max_parallel": 20,
            "window": chance.choice(["sliding", "bucket"]),
        }
        seconds, spread = chance.uniform, chance.uniform
        kinds += [
            Kind("plain", pick(40, 150), seconds(0.05, 0.6), spread(0.2, 0.8)),
            Kind("embed", pick(20, 60), seconds(0.3, 2.0), spread(0.1, 0.6), "slots"),
            Kind("fetch", pick(20, 80), seconds(0.1, 0.6), spread(0.1, 0.9), "rate"),
            Kind("one", pick(10, 40), seconds(0.2, 1.0), spread(0.1, 0.5), "left"),
            Kind("two", pick(10, 40), seconds(0.2, 1.0), spread(0.1, 0.5), "right"),
            Kind("ask", pick(20, 60), seconds(0.5, 2.0), spread(0.1, 0.5), "tokens", (100, 900)),
            Kind("flaky", pick(5, 40), seconds(0.1, 0.5), 0.3, None, (0, 0), 0.25),
            Kind("nightly", pick(5, 30), seconds(0.1, 0.4), 0.3, None, (0, 0), 0.0, 20.0),
        ]
        chance.shuffle(kinds)
        del kinds[pick(4, len(kinds)) :]

    def payload(self, kind: Kind) -> dict[str, Any]:
        chance = self.chance
        took = kind.seconds * chance.lognormvariate(-(kind.spread**2) / 2, kind.spread)
        least, most = kind.tokens
        bound = chance.randint(least, most)
        return {
            "seconds": took,
            "bound": bound,
            "used": round(bound * self.share * chance.uniform(0.8, 1.1)),
            "fails": chance.random() < kind.fails,
        }

    def app(self) -> Penstock:
        app = Penstock(
            "sqlite:///simulated.db", lanes=self.lanes, max_workers=10, retry_base_seconds=2.0
        )

        async def handle(
            ctx: JobContext, *, seconds: float, bound: int, used: int, fails: bool
        ) -> None:
            await asyncio.sleep(seconds)
            if fails and ctx.attempt == 1:
                raise RuntimeError("not yet")
            if bound:
                ctx.lanes.used(tokens=used, cost=used * 0.00001)
                self.cost += used * 0.00001

        for kind in self.kinds:
            amount = None if kind.tokens == (0, 0) else _amount
            app.job(kind.name, lane=kind.lane, amount=amount)(handle)
        return app

    async def scenario(self, app: Penstock) -> None:
        for kind in self.kinds:
            await app.enqueue_many(kind.name, [self.payload(kind) for _ in range(HISTORY)])
        await app.drain()
        await asyncio.sleep(RENEWED)
        self.cost = 0.0
        for kind in self.kinds:
            for tenant in ("acme", "other"):
                jobs = [self.payload(kind) for _ in range(kind.jobs // 2)]
                priority = self.chance.choice(list(Priority))
                at = app.queue.now() + kind.later if kind.later else None
                await app.enqueue_many(kind.name, jobs, tenant=tenant, priority=priority, run_at=at)
        self.forecast = await app.forecast()

    def check(self, jobs: list[Job]) -> None:
        assert self.forecast is not None
        self.took = max(job.finished_at or 0.0 for job in jobs) - self.forecast.at


def _amount(payload: dict[str, Any]) -> dict[str, float]:
    return {"tokens": payload["bound"], "cost": payload["bound"] * 0.00001}


def test_twenty_mixed_backlogs_are_done_when_and_cost_what_was_forecast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulation, "RECOVERY_SECONDS", 10_000.0)
    off: dict[int, float] = {}
    dear: dict[int, float] = {}
    for seed in range(BACKLOGS):
        backlog = MixedBacklog(seed)
        simulate(backlog.app(), backlog.scenario, seeds=[seed], faults=(), check=backlog.check)
        forecast = backlog.forecast
        assert forecast is not None
        assert forecast.done_at is not None
        assert forecast.stays == 0
        off[seed] = (forecast.done_at - forecast.at) / backlog.took - 1
        if backlog.cost:
            dear[seed] = (forecast.cost or 0.0) / backlog.cost - 1
    assert sum(abs(one) <= FINISH for one in off.values()) >= GOOD, off
    assert len(dear) > BACKLOGS / 4
    assert all(abs(one) <= COST for one in dear.values()), dear
