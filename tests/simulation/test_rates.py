"""On the virtual clock, `gather` of a hundred requests takes the time that the lane says."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from penstock import Job, JobContext, JobState, Penstock
from penstock.testing import simulate, simulation

HUNDRED = [str(number) for number in range(100)]
MORE = 1.05
"""What it may take in all: two hundredths by which a lane spaces its starts wider than it has to
(`SPARE`), and, where slots are what is waited for, the transactions that hand them on."""
FREE: dict[str, Any] = {"min_interval_seconds": 0.0, "max_parallel": 100}
RATES: dict[str, tuple[dict[str, Any], float]] = {
    "100 a second": ({"min_interval_seconds": 0.01, "max_parallel": 100}, 0.01),
    "15 in half a second": ({"requests_per_interval": 15, "interval_seconds": 0.5}, 1 / 30),
    "1 a second": ({"min_interval_seconds": 1.0, "max_parallel": 1}, 1.0),
}
WAYS = ["permits", "ctx.http", "permits in its own lane", "ctx.http in its own lane"]


@dataclass
class Service:
    """Where all requests arrive: it notes when, and how many are there at once."""

    seconds: float
    arrivals: dict[str, list[float]] = field(default_factory=dict)
    there: int = 0
    most: int = 0

    async def visit(self, which: str) -> None:
        self.arrivals.setdefault(which, []).append(asyncio.get_running_loop().time())
        self.there += 1
        self.most = max(self.most, self.there)
        await asyncio.sleep(self.seconds)
        self.there -= 1

    def took(self) -> float:
        """From the first start to the last. Each request was made, and none twice."""
        assert {which: len(times) for which, times in self.arrivals.items()} == dict.fromkeys(
            HUNDRED, 1
        )
        times = [time for times in self.arrivals.values() for time in times]
        return max(times) - min(times)


def gather_all(
    lane: dict[str, Any], way: str, monkeypatch: pytest.MonkeyPatch, *, seconds: float, server: bool
) -> Service:
    """Has one job make a hundred requests at once, each of which takes so many seconds."""
    service = Service(seconds)

    async def answer(_: simulation.Simulation, request: httpx2.Request) -> httpx2.Response:
        await service.visit(request.url.path.removeprefix("/"))
        return httpx2.Response(200, json={})

    monkeypatch.setattr(simulation.Simulation, "answer", answer)
    monkeypatch.setattr(simulation, "RECOVERY_SECONDS", 1000.0)  # a slow lane takes its time
    app = Penstock("sqlite:///simulated.db", lanes={"limited": lane, "other": FREE})

    @app.job("fan-out", lane="limited" if "own" in way else "other")
    async def fan_out(ctx: JobContext) -> None:
        async def by_permit(which: str) -> None:
            async with ctx.lanes.permit("limited"):
                await service.visit(which)

        async def by_http(which: str) -> None:
            await ctx.http.get(f"http://api.example/{which}", lane="limited")

        await asyncio.gather(*map(by_http if "http" in way else by_permit, HUNDRED))

    async def scenario(app: Penstock) -> None:
        await app.enqueue("fan-out")

    def ends_in_one_run(jobs: list[Job]) -> None:
        ends = [(job.state, job.attempts, job.releases) for job in jobs]
        assert ends == [(JobState.COMPLETED, 1, 0)]

    simulate(app, scenario, seeds=1, faults=(), check=ends_in_one_run, server=server)
    return service


CASES = [
    *(("100 a second", way, False) for way in WAYS),
    *(("15 in half a second", way, True) for way in WAYS),
    *(("1 a second", way, False) for way in WAYS if "http" in way),
]


@pytest.mark.parametrize(("rate", "way", "server"), CASES)
def test_a_hundred_at_once_take_the_time_that_the_rate_says_and_no_more(
    rate: str, way: str, server: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane, interval = RATES[rate]
    # Of a request that takes longer than the interval, more than one would have to be there.
    service = gather_all(lane, way, monkeypatch, seconds=interval / 2, server=server)
    assert 1.0 <= service.took() / ((len(HUNDRED) - 1) * interval) <= MORE


@pytest.mark.parametrize("server", [False, True], ids=["file", "server"])
@pytest.mark.parametrize("way", [way for way in WAYS if "http" in way])
def test_a_hundred_at_once_take_the_time_that_the_slots_say_and_no_more(
    way: str, server: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots, seconds = 4, 1.0
    lane = {"min_interval_seconds": 0.0, "max_parallel": slots}
    service = gather_all(lane, way, monkeypatch, seconds=seconds, server=server)
    assert service.most == slots
    assert 1.0 <= service.took() / ((len(HUNDRED) // slots - 1) * seconds) <= MORE
