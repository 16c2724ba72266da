"""`penstock worker` and signals: nothing is lost, and the process always ends."""

import signal
import time

import pytest

from tests.support.cli import Cli, Running, wait_until
from tests.support.waiting import PATIENCE

APART = 0.1
"""Seconds between two signals; those closer than 0.05 s are taken for one."""
SEEN = 2.0
"""Seconds until a worker has surely seen a signal, where a blocked event loop cannot say so."""


def start_job(cli: Cli, kind: str, *arguments: str) -> tuple[Running, str]:
    """A worker in the middle of a job of this kind."""
    worker = cli.worker(*arguments)
    job_id = cli.enqueue(kind)
    wait_until((cli.folder / "started").exists, "the job to start")
    return worker, job_id


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_stops_at_once(cli: Cli, number: signal.Signals) -> None:
    worker = cli.worker()
    worker.send(number)
    done = worker.end()
    assert done.code == 0
    assert done.err.splitlines()[1:] == ["stopping", "stopped"], done.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_job_is_finished_first(cli: Cli, number: signal.Signals) -> None:
    worker, job_id = start_job(cli, "hold")
    worker.send(number)
    worker.said("stopping: waiting up to 25 s for 1 running job; signal again to stop at once")
    late = cli.enqueue("add")
    (cli.folder / "gate").touch()
    assert worker.end().code == 0
    job = cli.job(job_id)
    assert (job.state, job.result, job.attempts) == ("completed", "released", 1)
    assert cli.job(late).state == "queued", "a stopping worker takes no new jobs"


def test_past_the_grace_a_job_goes_back_unspent(cli: Cli) -> None:
    worker, job_id = start_job(cli, "hold", "--grace", "0.2")
    worker.send(signal.SIGTERM)
    worker.said("waiting up to 0.2 s")
    assert worker.end().code == 0
    job = cli.job(job_id)
    assert (job.state, job.attempts) == ("queued", 0)


def test_a_second_signal_ends_at_once(cli: Cli) -> None:
    worker, job_id = start_job(cli, "hold", "--grace", "3600")
    worker.send(signal.SIGTERM)
    worker.said("stopping")
    time.sleep(APART)
    worker.send(signal.SIGTERM)
    done = worker.end()
    assert done.code == 130
    assert "stopping at once" in done.err
    job = cli.job(job_id)
    assert (job.state, job.attempts) == ("queued", 0)


def test_one_signal_delivered_twice_is_one(cli: Cli) -> None:
    """As timeout(1) does: it signals the process, then the whole group."""
    worker = cli.start("worker", "shop:app", wrapper=f"timeout {PATIENCE:g}")
    worker.said("penstock worker")
    worker.send(signal.SIGTERM)  # it passes that on as it would its own
    done = worker.end()
    assert done.code == 0
    assert done.err.splitlines()[1:] == ["stopping", "stopped"], done.err


@pytest.mark.parametrize("kind", ["stubborn", "freeze"])
def test_a_second_signal_ends_whatever_the_job_does(cli: Cli, kind: str) -> None:
    """One ignores its cancellation, the other blocks the event loop."""
    worker, job_id = start_job(cli, kind, "--grace", "3600")
    worker.send(signal.SIGTERM)
    time.sleep(SEEN)
    worker.send(signal.SIGTERM)
    assert worker.end().code == 130
    assert cli.job(job_id).state in ("queued", "running")


@pytest.mark.alone
def test_a_third_signal_does_not_wait_at_all(cli: Cli) -> None:
    """Not the 2 s of the second, at least once in some tries: a worker that stands still meanwhile
    takes two signals for one."""
    for _ in range(4):
        (cli.folder / "started").unlink(missing_ok=True)
        worker, _ = start_job(cli, "freeze")
        worker.send(signal.SIGINT)
        time.sleep(SEEN)
        worker.send(signal.SIGINT)
        time.sleep(APART)
        worker.send(signal.SIGINT)
        begun = time.monotonic()
        assert worker.end().code == 130
        if time.monotonic() - begun < 1.5:
            return
    pytest.fail("it waited each time")


@pytest.mark.parametrize("kind", ["block", "executor"])
def test_a_thread_that_does_not_return_does_not_keep_the_process(cli: Cli, kind: str) -> None:
    worker, job_id = start_job(cli, kind, "--grace", "0")
    worker.send(signal.SIGTERM)
    assert worker.end(timeout=40).code == 0, "the thread takes 60 s"
    job = cli.job(job_id)
    assert (job.state, job.attempts) == ("queued", 0)


def test_json_says_what_a_stop_waits_for(cli: Cli) -> None:
    worker, _ = start_job(cli, "hold", "--json", "--grace", "50")
    worker.send(signal.SIGTERM)
    worker.said("stopping")
    (cli.folder / "gate").touch()
    events = worker.end().lines
    assert [event["event"] for event in events] == ["started", "stopping", "stopped"]
    assert events[1] == {"event": "stopping", "grace_seconds": 50.0, "running": 1}
