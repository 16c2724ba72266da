"""Several worker processes on one file, and different kinds in different processes."""

import asyncio
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

from penstock import JobState
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import ROOT, Farm

NO_LAPSE = 60.0
"""Seconds of a lease where a process that the machine forgets for a while is to keep its jobs."""


async def test_four_processes_share_the_work_and_do_each_job_once(farm: Farm) -> None:
    farm.settings["lease_seconds"] = NO_LAPSE
    async with farm.app() as app:
        workers = await asyncio.gather(*(farm.start(max_workers=2) for _ in range(4)))
        payloads = [{"n": n, "seconds": 0.01} for n in range(800)]
        jobs = await app.enqueue_many("work", payloads)
        await app.drain(timeout=PATIENCE)
        if len(shares := Counter(note.pid for note in farm.side.notes())) < 4 or (
            min(shares.values()) < 20
        ):  # one of them had not the time; it has when the others have as much again
            jobs += await app.enqueue_many("work", payloads)
            await app.drain(timeout=PATIENCE)
        rows = await app.jobs(limit=2000)
    assert len(rows) == len(jobs)
    assert {(job.state, job.attempts, len(job.history)) for job in rows} == {
        (JobState.COMPLETED, 1, 0)
    }
    assert farm.side.runs() == {job.id: 1 for job in jobs}
    shares = Counter(note.pid for note in farm.side.notes())
    assert shares.keys() == {worker.pid for worker in workers}
    assert min(shares.values()) >= 20


async def test_each_process_takes_its_own_kinds_and_the_rest_says_what_it_waits_for(
    farm: Farm,
) -> None:
    async with farm.bare() as app:  # which knows no kind at all
        first = await farm.start(kinds=["work"])
        second = await farm.start(kinds=["gated*"])
        farm.gate.touch()
        mine = await app.enqueue_many("work", [{"n": n} for n in range(50)])
        theirs = await app.enqueue_many("gated", [{"gate": str(farm.gate)}] * 50)
        nobodys = await app.enqueue("unknown.kind", {"a": 1})
        waiting = await app.enqueue("blocking", {"seconds": 0})
        for job in [*mine, *theirs]:
            done = await app.wait(job.id, timeout=60)
            assert done.state is JobState.COMPLETED
            assert done.result["pid"] == (first if job.kind == "work" else second).pid
        for job in (nobodys, waiting):
            row = await app.get(job.id)
            assert (row.state, row.attempts) == (JobState.QUEUED, 0)
            assert row.waiting_for is not None
            assert repr(job.kind) in row.waiting_for
        # Retries and time-out come from the first process that knows the kind.
        assert (await app.get(mine[0].id)).max_retries == 5
        assert (await app.get(nobodys.id)).max_retries is None
        third = await farm.start(kinds=["blocking"])
        done = await app.wait(waiting.id, timeout=60)
        assert done.result == {"attempt": 1, "pid": third.pid}
        assert (await app.get(nobodys.id)).state is JobState.QUEUED


async def test_processes_come_and_go_under_load(farm: Farm) -> None:
    farm.settings["lease_seconds"] = NO_LAPSE
    async with farm.app() as app:
        jobs = await app.enqueue_many("work", [{"n": n, "seconds": 0.01} for n in range(1000)])
        steady = await farm.start(max_workers=2)
        for turn in range(1, 4):
            passing = await farm.start(max_workers=2)

            def enough(runs: int = turn * 200) -> bool:
                return len(farm.side.notes()) >= runs

            await until(enough, "some jobs to run")
            if turn == 2:
                await passing.kill()
            else:
                passing.send(signal.SIGTERM)
                assert await passing.exit() == 0
        await app.drain(timeout=PATIENCE)
        rows = await app.jobs(limit=1001)

        async def left() -> bool:
            return [p.pid for p in await app.processes()] == [steady.pid]

        await until(left, "the others to be forgotten")
    assert {job.id for job in rows} == {job.id for job in jobs}
    assert {job.state for job in rows} == {JobState.COMPLETED}
    runs = farm.side.runs()
    assert all(1 <= runs[job.id] <= job.attempts <= 2 for job in rows)
    # Only what the killed process was running, or had run and not yet stored: all that it had
    # claimed ahead at most, on a machine that is slow to store.
    lost = [job for job in rows if job.attempts == 2]
    assert len(lost) <= 102
    assert all([r.error.type for r in job.history] == ["WorkerLost"] for job in lost)
    assert all(job.history == [] for job in rows if job.attempts == 1)


async def test_a_parent_that_dies_after_enqueueing_makes_no_second_children(farm: Farm) -> None:
    async with farm.app("family") as app:
        parent = await app.enqueue("parent", log="family")
        victim = await farm.start("family")
        assert await victim.exit() == -signal.SIGKILL
        await farm.start("family")
        done = await app.wait(parent.id, timeout=60)
        await app.drain(timeout=PATIENCE)
        children = await app.jobs(kind="child")
    assert (done.state, done.attempts) == (JobState.COMPLETED, 2)
    assert farm.side.runs("parent") == {parent.id: 2}
    assert sorted(job.id for job in children) == sorted(done.result)
    assert len(set(done.result)) == 3
    assert sorted(job.result for job in children) == [1, 1, 2]
    assert {(job.parent_id, job.log) for job in children} == {(parent.id, "family")}
    assert {job.state for job in children} == {JobState.COMPLETED}


async def test_an_enqueuer_in_one_process_starts_an_idle_worker_in_another_at_once(
    farm: Farm,
) -> None:
    farm.settings["poll_seconds"] = 60.0
    async with farm.app() as app:
        await farm.start()
        for n in range(20):
            job = await app.enqueue("work", {"n": n})
            assert (await app.wait(job.id, timeout=60)).state is JobState.COMPLETED


async def test_keys_race_between_processes_and_one_job_wins(farm: Farm) -> None:
    script = (
        "import asyncio, sys\n"
        "from penstock import Penstock\n"
        "async def main():\n"
        "    async with Penstock(sys.argv[1], durable=False) as app:\n"
        "        for n in range(100):\n"
        "            job = await app.enqueue('work', {'n': n}, key=str(n))\n"
        "            print(n, job.id)\n"
        "asyncio.run(main())\n"
    )
    async with farm.bare() as app:

        async def race() -> bytes:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", script, farm.url),
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
            )
            output, _ = await process.communicate()
            assert process.returncode == 0
            return output

        outputs = await asyncio.gather(*(race() for _ in range(3)))
        assert len(set(outputs)) == 1, "every process got the same jobs"
        assert len(await app.jobs(limit=1000)) == 100


async def test_the_command_line_worker_drains_beside_another_process(farm: Farm) -> None:
    module = farm.folder / "cli_app.py"
    module.write_text(
        "from pathlib import Path\n"
        "from tests.support.apps.work import build\n"
        "from tests.support.side_effects import Side\n"
        f"app = build({farm.url!r}, Side(Path({str(farm.side.path)!r})), durable=False)\n"
    )
    farm.settings["lease_seconds"] = NO_LAPSE
    penstock = Path(sys.executable).with_name("penstock")
    path = os.pathsep.join(filter(None, [str(ROOT), str(farm.folder), os.getenv("PYTHONPATH")]))
    async with farm.app() as app:
        jobs = await app.enqueue_many("work", [{"n": n, "seconds": 0.005} for n in range(200)])
        await farm.start()
        process = await asyncio.create_subprocess_exec(
            *(str(penstock), "worker", "cli_app:app", "--drain"),
            cwd=farm.folder,
            env={**os.environ, "PYTHONPATH": path},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(60):
            assert await process.wait() == 0
        rows = await app.jobs(limit=300)
    assert {job.state for job in rows} == {JobState.COMPLETED}
    assert farm.side.runs() == {job.id: 1 for job in jobs}


async def test_processes_that_start_together_on_a_new_file_all_get_to_work(farm: Farm) -> None:
    farm.settings["lease_seconds"] = NO_LAPSE
    workers = await asyncio.gather(*(farm.start(max_workers=1) for _ in range(6)))
    async with farm.app() as app:
        assert {p.pid for p in await app.processes()} == {worker.pid for worker in workers}
        jobs = await app.enqueue_many("gated", [{"gate": str(farm.gate)}] * 6)
        await until(lambda: len(farm.side.notes()) == 6, "every process to run a job")
        assert {note.pid for note in farm.side.notes()} == {worker.pid for worker in workers}
        farm.gate.touch()
        for job in jobs:
            assert (await app.wait(job.id, timeout=60)).attempts == 1


async def test_a_run_folder_swept_away_only_slows_things_down(farm: Farm) -> None:
    farm.settings["lease_seconds"] = 8.0  # which now tells alone that a process is gone
    async with farm.app() as app:
        worker = await farm.start()
        job = await app.enqueue("gated", {"gate": str(farm.gate)})
        await until(farm.side.notes, "the job to run")
        shutil.rmtree(farm.folder / "jobs.db-run")  # as a cleaner of old files might
    async with farm.app() as app:
        following = await app.enqueue("work", {"n": 1})
        assert (await app.wait(following.id, timeout=60)).state is JobState.COMPLETED
        assert farm.side.runs("gated") == {job.id: 1}
        await worker.kill()
        farm.gate.touch()
        await farm.start()
        done = await app.wait(job.id, timeout=60)
        assert done.state is JobState.COMPLETED
