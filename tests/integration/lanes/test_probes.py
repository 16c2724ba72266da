"""Probes with real processes: recovery is noticed before the next try is due."""

import pytest

from penstock import JobState
from penstock.engine import prober
from tests.support.counting_server import Answer, CountingServer
from tests.support.lane_outage import LANE, STEADY, all_ended, enqueue, opens
from tests.support.waiting import until
from tests.support.worker_processes import Farm


async def test_probe_of_the_health_url_brings_recovery_forward(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": {**STEADY, "health_url": server.url("/health")}}
    async with farm.app("laned") as app:
        await farm.start("laned")
        server.answers["/api"] = server.answers["/health"] = Answer(503)
        jobs = await enqueue(app, server, 20)
        await opens(app)
        await until(lambda: len(server.at("/health")) >= 2, "probes")
        tries = len(server.at("/api"))
        server.answers["/api"] = server.answers["/health"] = Answer()
        done = await all_ended(app, jobs)
    assert {(job.state, job.attempts) for job in done} == {(JobState.COMPLETED, 1)}
    assert tries <= 4 * 3, "probes are no tries"


async def test_health_url_that_makes_no_sense_stops_no_other_probe(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {
        "a": {**STEADY, "health_url": "http://127.0.0.1:99999/"},
        "api": {**STEADY, "health_url": server.url("/health")},
    }
    server.answers["/"] = Answer(500)
    async with farm.app("laned") as app:
        await farm.start("laned")
        await app.enqueue_many("call", [{"lane": "a", "url": server.url("/a")}] * 4)
        await opens(app)
        jobs = await enqueue(app, server, 4)
        await until(lambda: len(server.at("/health")) >= 2, "probes")
        server.answers["/"] = Answer()
        done = await all_ended(app, jobs)
    assert {job.state for job in done} == {JobState.COMPLETED}


async def test_probe_of_an_address_that_refused_brings_recovery_forward(
    farm: Farm, server: CountingServer
) -> None:
    farm.settings["lanes"] = {"api": STEADY}
    async with farm.app("laned") as app:
        await farm.start("laned")
        server.down()
        jobs = await enqueue(app, server, 20)
        await opens(app)

        def probed() -> bool:
            return farm.query("SELECT probe_ok FROM lanes WHERE name = 'api'") == [(0,)]

        await until(probed, "a probe to fail")
        server.up()
        done = await all_ended(app, jobs)
    assert {(job.state, job.attempts) for job in done} == {(JobState.COMPLETED, 1)}


async def test_single_job_is_spared_when_the_probe_confirms_the_outage(
    farm: Farm, server: CountingServer
) -> None:
    """There is no second job to tell a bad payload from an outage, but there is the probe."""
    farm.settings["lanes"] = {"api": {**LANE, "probe_seconds": 0.1}}
    farm.settings["retry_base_seconds"] = 30.0  # so that the probe comes before the retry
    async with farm.app("laned") as app:
        await farm.start("laned")
        server.down()
        (job,) = await enqueue(app, server, 1)
        await opens(app)
        await until(lambda: len(farm.side.notes()) >= 5, "more tries than it has attempts")
        assert (await app.get(job.id)).state in (JobState.QUEUED, JobState.RUNNING)
        server.up()
        done = await app.wait(job.id, timeout=60)
    assert (done.state, done.attempts) == (JobState.COMPLETED, 1)


async def test_hanging_probe_does_not_delay_the_take_over_from_a_dead_process(
    farm: Farm, server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober, "PROBE_TIMEOUT", 600.0)
    farm.settings["lease_seconds"] = 600.0
    farm.settings["lanes"] = {
        "api": {**STEADY, "health_url": server.url("/health"), "probe_seconds": 0.05}
    }
    server.answers["/api"] = Answer(500)
    server.answers["/health"] = Answer(hang=True)
    async with farm.app("laned") as app:
        victim = await farm.start("laned")
        await app.enqueue("hold", {"lane": "free", "gate": str(farm.gate)})
        await until(lambda: farm.side.notes(kind="hold"), "the job to run")
        async with app.running():
            await enqueue(app, server, 4)
            # The victim gives up after seconds, we do not: one of three is ours.
            await until(lambda: len(server.at("/health")) >= 3, "both to probe")
            await victim.kill()
            await until(lambda: len(farm.side.notes(kind="hold")) == 2, "the take-over")
            farm.gate.touch()
