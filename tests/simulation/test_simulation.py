"""The engine under a virtual clock and faults from a seed; and that this finds what it should."""

import asyncio
import gc
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from benchmarks import simulation as kept
from benchmarks.simulation import PlantedBug
from penstock import Job, JobContext, Penstock, runtime
from penstock.engine.receipts import RunReceipts
from penstock.errors import ConfigError
from penstock.testing import SimulationFailed, simulate
from penstock.testing.model import ReferenceModel
from penstock.testing.rows import LaneRow, RowChange, SlotRow
from tests.simulation.planted_bugs import AMOUNT_BUGS, BUGS, SERVER_BUGS, found
from tests.simulation.workload import app, check, receiver, scenario

ROOT = Path(__file__).parents[2]
TOGETHER = 100
"""Seeds of one test: of equal size, so that they can be spread."""
ON_FILE, ON_SERVER = 1400, 600
"""As many as `make test` has time for; `make simulate` tries more."""


@pytest.mark.parametrize("first", range(0, ON_FILE, TOGETHER))
def test_no_seed_breaks_a_promise(first: int) -> None:
    _try_seeds(first, server=False)


@pytest.mark.parametrize("first", range(0, ON_SERVER, TOGETHER))
def test_no_seed_breaks_a_promise_on_a_server(first: int) -> None:
    _try_seeds(first, server=True)


def _try_seeds(first: int, *, server: bool) -> None:
    seeds = range(first, first + TOGETHER)
    report = simulate(app, scenario, seeds=seeds, check=check, reset=receiver.clear, server=server)
    assert report.seeds == TOGETHER
    assert report.jobs > TOGETHER


KEPT = kept.read().bugs


@pytest.mark.parametrize("one", KEPT, ids=lambda one: one.bug)
def test_bug_that_is_put_back_is_found(one: PlantedBug) -> None:
    """By the seed that has found it first: to look for it again would take longer."""
    assert one.first is not None
    assert found(one.bug, one.first)


def test_all_planted_bugs_were_looked_for() -> None:
    assert [one.bug for one in KEPT] == [*BUGS, *SERVER_BUGS, *AMOUNT_BUGS]
    assert len(KEPT) >= 15


def _charging(safe: bool) -> tuple[Penstock, Counter[str]]:
    shop = Penstock("sqlite:///simulated.db", lease_seconds=3.0, retry_base_seconds=0.1)
    charged: Counter[str] = Counter()

    @shop.job("charge")
    async def charge(ctx: JobContext, order: str) -> None:
        await asyncio.sleep(0.1)
        if not (safe and charged[order]):  # the bank knows the order, and charges it once
            charged[order] += 1
        await asyncio.sleep(0.1)  # here a crash repeats the charge

    return shop, charged


async def _order(app: Penstock) -> None:
    jobs = [await app.enqueue("charge", {"order": f"order {n}"}, key=str(n)) for n in range(5)]
    for job in jobs:
        await app.wait(job.id)


@pytest.mark.parametrize("safe", [True, False])
def test_handler_that_charges_twice_is_found(safe: bool) -> None:
    shop, charged = _charging(safe)

    def once(jobs: list[Job]) -> None:
        twice = [order for order, times in charged.items() if times > 1]
        assert not twice, f"{twice[0]} was charged {charged[twice[0]]} times"

    def run() -> None:
        simulate(shop, _order, seeds=100, check=once, reset=charged.clear)

    if safe:
        run()
        return
    with pytest.raises(SimulationFailed, match="was charged 2 times") as failure:
        run()
    seed, faults = failure.value.seed, failure.value.faults
    assert len(faults) <= 2, "the others were left out"
    assert f"seeds=[{seed}]" in str(failure.value)
    with pytest.raises(SimulationFailed) as again:
        simulate(shop, _order, seeds=[seed], check=once, reset=charged.clear)
    assert str(again.value) == str(failure.value)


def test_without_faults_nothing_is_repeated() -> None:
    shop, charged = _charging(safe=False)
    simulate(shop, _order, seeds=20, faults=(), reset=charged.clear)
    assert set(charged.values()) == {1}


def test_seed_is_the_same_in_every_process() -> None:
    """The order of sets, which Python draws anew for each process, must not matter."""
    bug = next(one for one in KEPT if one.bug == "leases are not renewed")
    program = (
        "from tests.simulation.planted_bugs import found\n"
        f"print(found({bug.bug!r}, {bug.first}))\n"
        "from penstock.testing import simulate\n"
        "from tests.simulation.workload import app, check, receiver, scenario\n"
        "for server in (False, True):\n"
        "    print(simulate(\n"
        "        app, scenario, seeds=range(8), check=check, reset=receiver.clear, server=server))"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": number},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for number in ("1", "2")
    ]
    assert told[0] == told[1]
    assert told[0].count("steps=") == 2
    assert "has lost its lease" in told[0]


def _lane(step: int, trial: int | None = None) -> LaneRow:
    return LaneRow("api", step, trial, 4, None, None)


def _said_of_a_lane_that_is_open(*changes: RowChange) -> list[str]:
    """What the reference model says of a transaction."""
    model = ReferenceModel(lambda: 0.0, [], weighted=False, now=lambda: 0.0, server=False)
    model.commit([_lane(step=1)])
    model.commit(changes)
    return model.wrong


def test_tries_are_counted_where_the_breaker_is_open_within_a_transaction() -> None:
    """Trips that come together share one: the try may succeed in it, jobs begin, and a probe open
    the breaker again."""
    begun = [SlotRow("api", 1, job) for job in (11, 12)]
    assert _said_of_a_lane_that_is_open(_lane(0), *begun, _lane(0), _lane(1)) == []
    twice = ["2 tries at once in lane api, which is open"]
    assert _said_of_a_lane_that_is_open(*begun, _lane(1, trial=11), _lane(0)) == twice
    again = begun[0], _lane(1, trial=11), begun[1], _lane(1, trial=12)
    assert _said_of_a_lane_that_is_open(_lane(0), _lane(1), *again) == twice


def test_time_passes_only_in_the_simulation() -> None:
    shop = Penstock("sqlite:///simulated.db")

    @shop.job("long", timeout=90.0)
    async def long(ctx: JobContext) -> None:
        await asyncio.sleep(30.0)

    async def order(app: Penstock) -> None:
        job = await app.enqueue("long", delay=20.0)
        await app.wait(job.id)

    simulate(shop, order, seeds=1, faults=())


def test_app_with_services_is_refused() -> None:
    with pytest.raises(ConfigError, match="services cannot be simulated"):
        simulate(Penstock("sqlite:///simulated.db").use("documents"), _order, seeds=1)


def test_job_that_nobody_handles_is_found() -> None:
    async def misspelt(app: Penstock) -> None:
        await app.enqueue("chrage", {"order": "book"})

    with pytest.raises(SimulationFailed, match="no handler is registered for 'chrage'"):
        simulate(_charging(safe=True)[0], misspelt, seeds=1, faults=())


def test_simulation_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is over while its processes still start: their `finally` blocks would run
    later, in the middle of something else."""
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: left.append(str(told.exc_value)))

    async def nothing(app: Penstock) -> None:
        """The scenario is over at once."""

    simulate(_charging(safe=True)[0], nothing, seeds=60)
    gc.collect()
    assert left == []


def _asking() -> Penstock:
    """An app whose jobs ask a service, and leave receipts."""
    lane = {"min_interval_seconds": 0.01, "max_parallel": 4, "timeout_seconds": 2.0}
    lane |= {"breaker_first_seconds": 0.5, "breaker_cap_seconds": 4.0}
    asking = Penstock(
        "sqlite:///simulated.db", lease_seconds=3.0, retry_base_seconds=0.1, lanes={"api": lane}
    )

    @asking.job("ask", lane="api", max_retries=20)
    async def ask(ctx: JobContext) -> int:
        same = [ctx.http.get("http://api.example/same", record=True) for _ in range(2)]
        # What is no JSON fails here, before the next record: so it is asked anew.
        told = {answer.json()["number"] for answer in await asyncio.gather(*same)}
        await ctx.sleep(1.5)
        other = await ctx.http.get("http://api.example/other", record=True)
        await asyncio.sleep(0.1)  # here a crash repeats no request
        told.add(other.json()["number"])
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return len(told)

    return asking


async def _ask(app: Penstock) -> None:
    for job in [await app.enqueue("ask", key=str(n)) for n in range(4)]:
        await app.wait(job.id)


def _answer(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json={"number": runtime.random_bytes(8).hex()})


def _each_is_answered(jobs: list[Job]) -> None:
    """An answer that is no JSON does not come back for ever, and nobody gets another's."""
    assert {(job.state, job.result) for job in jobs} == {("completed", 3)}


@pytest.mark.parametrize("server", [False, True], ids=["file", "server"])
def test_what_was_answered_is_asked_again_only_after_a_failure(server: bool) -> None:
    options: dict[str, Any] = {"respond": _answer, "check": _each_is_answered, "server": server}
    simulate(_asking(), _ask, seeds=40, **options)


def test_receipts_that_are_not_taken_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunReceipts, "take", lambda *_: None)
    with pytest.raises(SimulationFailed, match="asks again for what it has a receipt of"):
        simulate(_asking(), _ask, seeds=40, respond=_answer)


def test_a_timeout_counts_what_a_run_does_and_neither_sleeps_nor_waits() -> None:
    patient = Penstock("sqlite:///simulated.db", lease_seconds=3.0, retry_base_seconds=0.1)

    async def briefly() -> None:
        await asyncio.sleep(0.5)

    @patient.job("patient", timeout=2.0, max_retries=0)
    async def wait(ctx: JobContext, beside: bool) -> None:
        for pause in (partial(ctx.sleep, 30.0), partial(ctx.wait_for, "never", timeout=30.0)):
            if beside:  # a step is under way, so the job is parked and keeps its run
                await asyncio.gather(ctx.step("beside", briefly), pause())
            else:
                await pause()

    @patient.job("busy", timeout=2.0, max_retries=0)
    async def busy(ctx: JobContext) -> None:
        await ctx.sleep(30.0)
        await asyncio.sleep(3.0)

    async def scenario(app: Penstock) -> None:
        jobs = [await app.enqueue("patient", {"beside": beside}) for beside in (False, True)]
        for job in [*jobs, await app.enqueue("busy")]:
            await app.wait(job.id)

    def check(jobs: list[Job]) -> None:
        ends = sorted(
            (job.kind, str(job.state), job.error and job.error.get("type")) for job in jobs
        )
        patiently = ("patient", "completed", None)
        assert ends == [("busy", "failed", "JobTimeout"), patiently, patiently]

    simulate(patient, scenario, seeds=5, faults=(), check=check)
