"""A dependency goes away and comes back: what it costs, whom, and for how long.

Times are a tenth of the defaults: the first try after 0.1 s, a probe every 0.3 s, work resumed
within 0.5 s of the dependency's return (the tests allow five times that).
"""

import asyncio
import time
from dataclasses import dataclass

import pytest

from penstock import JobState, Penstock
from penstock.ports.lanes import LaneCommand, LaneInfo
from tests.support.counting_server import Answer, CountingServer
from tests.support.cpu_time import cpu_share
from tests.support.lane_outage import JOBS, LANE, RESUMED, SOON, STEADY, all_ended, enqueue, opens
from tests.support.waiting import look_on, until
from tests.support.worker_processes import Farm, WorkerProcess

pytestmark = pytest.mark.alone


async def lane_info(app: Penstock) -> LaneInfo:
    (lane,) = [lane for lane in await app.lane_infos() if lane.name == "api"]
    return lane


@dataclass
class Outage:
    """What was seen while the dependency was away."""

    tries: int
    """Runs of jobs in its lane, in the first seconds of it."""
    cpu: float
    """Share of one core that all worker processes took together."""
    others_seconds: float
    """For 300 jobs that do not need it."""


async def observe(
    farm: Farm, app: Penstock, workers: list[WorkerProcess], seconds: float
) -> Outage:
    """Look at an outage for some seconds, with and without other work."""
    cpu = await cpu_share(seconds, *(worker.pid for worker in workers))
    notes = farm.side.notes(kind="call")
    tries = sum(note.at <= notes[0].at + seconds for note in notes)
    return Outage(tries, cpu, await others(app))


async def others(app: Penstock) -> float:
    """Seconds that 300 jobs without a lane take."""
    start = time.monotonic()
    for job in await app.enqueue_many("noop", [None] * 300):
        await app.wait(job.id, timeout=SOON)
    return time.monotonic() - start


FAULTS = {
    "answers 503": Answer(503),
    "hangs": Answer(hang=True),
    "closes connections": Answer(reset=True),
}


@pytest.mark.parametrize("fault", ["refuses connections", *FAULTS])
async def test_outage_costs_few_tries_little_time_and_no_attempts(
    farm: Farm, server: CountingServer, fault: str
) -> None:
    patience = 0.3 if fault == "hangs" else LANE["timeout_seconds"]
    farm.settings["lanes"] = {"api": {**LANE, "timeout_seconds": patience}}
    farm.settings["lease_seconds"] = SOON  # a pause of the machine is no death
    async with farm.app("laned") as app:
        workers = [await farm.start("laned"), await farm.start("laned")]
        alone = await others(app)
        if fault in FAULTS:
            server.answers["/api"] = FAULTS[fault]
        else:
            server.down()
        jobs = await enqueue(app, server)
        await until(lambda: farm.side.notes(kind="call"), "the first try")
        seen = await observe(farm, app, workers, 2.5)
        for _ in range(4):  # the machine may have been slower just then
            if seen.others_seconds > 3 * alone + 0.5:
                seen.others_seconds = await others(app)
        states = {job.state for job in await app.jobs(kind="call", limit=JOBS)}
        server.answers["/api"] = Answer()
        server.up()
        back = time.monotonic()

        async def first_done() -> bool:
            return bool(await app.jobs(states=["completed"], kind="call", limit=1))

        await until(first_done, "the first job done")
        resumed = time.monotonic() - back
        done = await all_ended(app, jobs)
        lane = await lane_info(app)

    assert states <= {JobState.QUEUED, JobState.RUNNING}, "nothing died of it"
    # Four were under way when it was noticed; then 0.1, 0.2, 0.4, 0.8, 1, 1 s apart.
    assert seen.tries <= 4 + 7
    assert seen.cpu <= 0.2
    assert seen.others_seconds <= 3 * alone + 0.5
    assert resumed <= RESUMED
    assert {job.state for job in done} == {JobState.COMPLETED}
    assert {job.attempts for job in done} == {1}, "no attempts spent"
    assert (lane.breaker, lane.in_flight) == ("closed", 0)


async def test_429_pauses_the_lane_for_all_processes_as_long_as_told(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": LANE}
    farm.settings["lease_seconds"] = SOON  # a pause of the machine is no death
    async with farm.app("laned") as app:
        workers = [await farm.start("laned"), await farm.start("laned")]
        server.answers["/api"] = Answer(429, headers={"retry-after": "1"})
        jobs = await enqueue(app, server, 40)
        await until(lambda: server.hits, "the first try")

        async def paused() -> bool:
            return (await lane_info(app)).blocked_why == "rate limited"

        await until(paused, "the lane to pause")
        seen = await observe(farm, app, workers, 2.5)
        assert (await lane_info(app)).breaker == "closed", "a 429 is no outage"
        server.answers["/api"] = Answer()
        done = await all_ended(app, jobs)

    arrivals = server.arrivals("/api")
    early = [at for at in arrivals if at < arrivals[0] + 0.95]
    assert len(early) <= LANE["max_parallel"], "before the time was over, only who was on the way"
    assert seen.cpu <= 0.2
    assert {(job.state, job.attempts) for job in done} == {(JobState.COMPLETED, 1)}


async def test_expired_key_blocks_the_lane_and_a_person_resumes_it(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": LANE}
    async with farm.app("laned") as app:
        workers = [await farm.start("laned"), await farm.start("laned")]
        server.answers["/api"] = Answer(401)
        jobs = await enqueue(app, server)

        async def blocked() -> bool:
            return (await lane_info(app)).blocked_why == "credentials"

        await until(blocked, "the lane to be blocked")
        seen = await observe(farm, app, workers, 1.0)

        async def at_rest() -> bool:
            jobs = await app.jobs(kind="call", limit=JOBS)
            return {job.state for job in jobs} == {JobState.QUEUED}

        await until(at_rest, "all to be queued: nothing died")
        waiting = await app.get(jobs[-1].id)
        server.answers["/api"] = Answer()
        await app.control_lane("api", LaneCommand.RESUME)
        done = await all_ended(app, jobs)

    assert (waiting.waiting_for or "").startswith("lane api: credentials")
    assert len([hit for hit in server.hits if hit.status == 401]) <= 6
    assert seen.cpu <= 0.2
    assert {job.state for job in done} == {JobState.COMPLETED}
    again = sum(job.attempts - 1 for job in done)
    assert again <= 2, "only who was refused twice before two others were has spent one"


async def test_process_that_starts_with_a_new_key_resumes_the_lane(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": LANE}
    async with farm.app("laned") as app:
        old = await farm.start("laned")
        server.answers["/api"] = Answer(403)
        jobs = await enqueue(app, server, 20)

        async def blocked() -> bool:
            return (await lane_info(app)).blocked_why == "credentials"

        await until(blocked, "the lane to be blocked")
        await old.kill()
        await farm.start("laned")  # with the old key still
        hits = len(server.hits)
        await until(lambda: len(server.hits) > hits, "a try")
        await until(blocked, "the lane to be blocked again")
        server.answers["/api"] = Answer()
        await farm.start("laned")
        done = await all_ended(app, jobs)
    assert {job.state for job in done} == {JobState.COMPLETED}


async def test_one_payload_that_always_gets_500_dies_alone(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": LANE}
    server.answers["/api/bad"] = Answer(500)
    breakers: set[str] = set()
    async with farm.app("laned") as app:
        good = await enqueue(app, server, 50)
        bad = await app.enqueue("call", {"lane": "api", "url": server.url("/api/bad")})
        good += await enqueue(app, server, 50)
        for _ in range(2):
            await farm.start("laned")
        while (await app.get(bad.id)).state in (JobState.QUEUED, JobState.RUNNING):
            breakers.add((await lane_info(app)).breaker)
            await asyncio.sleep(0.01)
        done = await all_ended(app, good)
        dead = await app.get(bad.id)
        lane = await lane_info(app)
    assert {(job.state, job.attempts) for job in done} == {(JobState.COMPLETED, 1)}
    assert (dead.state, dead.attempts) == (JobState.FAILED, 4)
    assert "open" not in breakers
    assert lane.breaker in ("closed", "suspect")


async def test_other_process_sees_the_same_breaker_and_starts_with_one_try(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": STEADY}
    server.answers["/api"] = Answer(500)
    async with farm.app("laned") as app:
        first = await farm.start("laned")
        await enqueue(app, server, 20)
        await opens(app)
        await until(lambda: farm.query("SELECT 1 FROM slots") == [], "the rest to end")
        before = len(server.hits)
        second = await farm.start("laned")
        await until(lambda: len(server.hits) > before, "the try of a starting process")
        await look_on(1.0)
        hits = len(server.hits)
        notes = farm.side.notes(kind="call")
    assert hits == before + 1, "and no other"
    assert {note.pid for note in notes} <= {first.pid, second.pid}


async def test_service_that_is_back_is_used_by_jobs_of_several_requests(
    farm: Farm, server: CountingServer
) -> None:
    """The try that closes the breaker may need more than one request."""
    farm.settings["lanes"] = {"api": LANE}
    server.answers["/api"] = Answer(500)
    async with farm.app("laned") as app:
        await farm.start("laned")
        payload = {"lane": "api", "url": server.url("/api"), "times": 3, "note": True}
        jobs = await app.enqueue_many("call", [payload] * 10)
        await opens(app)
        server.answers["/api"] = Answer()
        done = await all_ended(app, jobs, timeout=SOON)
    assert {(job.state, job.attempts) for job in done} == {(JobState.COMPLETED, 1)}


async def test_permits_of_jobs_without_a_lane_share_in_all_of_it(
    farm: Farm, server: CountingServer
) -> None:
    """An outage found under permits: no attempts, few tries, and all done afterwards."""
    farm.settings["lanes"] = {"api": LANE}
    server.answers["/api"] = Answer(500)
    async with farm.app("laned") as app:
        await farm.start("laned")
        payload = {"url": server.url("/api"), "lane": "api"}
        jobs = await app.enqueue_many("visit", [payload] * 30)
        await opens(app)
        await look_on(1.5)
        arrivals = server.arrivals("/api")
        tries = sum(at < arrivals[0] + 1.5 for at in arrivals)
        states = {job.state for job in await app.jobs(kind="visit")}
        server.answers["/api"] = Answer()
        done = await all_ended(app, jobs)
    assert tries <= 4 + 6
    assert JobState.FAILED not in states
    assert {(job.state, job.result) for job in done} == {(JobState.COMPLETED, 1)}


@pytest.mark.parametrize("lane", ["its own", "another"])
async def test_two_refusals_are_no_expired_key(
    farm: Farm, server: CountingServer, lane: str
) -> None:
    """Two pages are forbidden; the service itself is fine."""
    farm.settings["lanes"] = {"api": LANE}
    server.answers["/api/secret"] = Answer(403)
    async with farm.app("laned", max_retries=0) as app:
        await farm.start("laned", max_retries=0)
        kind = "call" if lane == "its own" else "visit"
        for _ in range(2):
            job = await app.enqueue(kind, {"lane": "api", "url": server.url("/api/secret")})
            assert (await app.wait(job.id, timeout=SOON)).state is JobState.FAILED
        assert (await lane_info(app)).blocked_why is None


async def test_addresses_nobody_can_use_are_no_outage(farm: Farm, server: CountingServer) -> None:
    """A scheme that does not exist is a mistake in the payload, however often it is made."""
    farm.settings["lanes"] = {"api": LANE}
    async with farm.app("laned") as app:
        await farm.start("laned")
        wrong = {"lane": "api", "url": "gopher://127.0.0.1/"}
        jobs = await app.enqueue_many("call", [wrong] * 3)
        done = await all_ended(app, jobs, timeout=SOON)
    assert {job.state for job in done} == {JobState.FAILED}
