"""`penstock jobs show --steps`, `jobs signal` and `dead-letters redrive --from-scratch`."""

import pytest

from penstock import JobContext, Penstock
from tests.support.cli import Cli
from tests.support.counting_server import CountingServer, as_json
from tests.support.waiting import until


async def failed_job(app: Penstock) -> str:
    """A dead letter that has recorded two steps and begun a third."""

    @app.job("steps", max_retries=0)
    async def handler(ctx: JobContext) -> None:
        async def plan() -> dict[str, str]:
            return {"next": "read", "api_key": "geheim"}

        async def fail() -> None:
            raise ValueError("no use")

        for _ in range(2):
            await ctx.step("plan", plan)
        await ctx.step("fail", fail)

    async with app.running():
        job = await app.enqueue("steps")
        await app.wait(job.id, timeout=60)
    return job.id


@pytest.fixture
def dead(cli: Cli) -> str:
    app = Penstock(cli.url, durable=False)
    return cli.call(failed_job(app), app)


def test_show_lists_the_steps_of_a_job(cli: Cli, dead: str) -> None:
    shown = cli("jobs", "show", dead, "--steps").out

    _, _, table = shown.rpartition("STEP")
    first, second, third = [line.split() for line in table.splitlines()[1:]]
    assert (first[0], second[0], third[0]) == ("plan", "plan#2", "fail")
    assert '"read"' in table
    assert "geheim" not in shown
    assert "not recorded yet" in table
    assert "STEP" not in cli("jobs", "show", dead).out


def test_show_as_json_has_the_steps_where_they_are_asked_for(cli: Cli, dead: str) -> None:
    steps = cli("jobs", "show", dead, "--steps", "--json").json["steps"]

    assert [(step["name"], step["occurrence"], step["attempts"]) for step in steps] == [
        ("plan", 1, 1),
        ("plan", 2, 1),
        ("fail", 1, 1),
    ]
    assert steps[0]["result"] == {"next": "read", "api_key": "geheim"}
    assert steps[2]["finished_at"] is None
    assert "steps" not in cli("jobs", "show", dead, "--json").json


async def asking_job(app: Penstock, url: str) -> str:
    """A job that was answered twice, the first time in vain."""

    @app.job("ask", max_retries=1)
    async def handler(ctx: JobContext) -> None:
        await ctx.http.post(url, json={"model": "small"}, record=True)
        if ctx.attempt == 1:
            raise ValueError("no use")

    async with app.running():
        job = await app.enqueue("ask")
        await app.wait(job.id, timeout=60)
    return job.id


def test_show_lists_receipts_with_what_they_tell(cli: Cli, server: CountingServer) -> None:
    usage = {"prompt_tokens": 1200, "completion_tokens": 7, "cost": 0.25}
    server.answers["/"] = as_json({"said": "yes", "usage": usage})
    app = Penstock(cli.url, durable=False, retry_base_seconds=0.01)
    job_id = cli.call(asking_job(app, server.url("/")), app)

    _, _, table = cli("jobs", "show", job_id, "--steps").out.rpartition("STEP")
    void, good = table.splitlines()[1:]
    assert "void receipt, small, 1,200 in 7 out tokens, price 0.25" in void
    assert " receipt, small" in good
    assert "void" not in good
    void, good = cli("jobs", "show", job_id, "--steps", "--json").json["steps"]
    assert (void["kind"], void["receipt"]["void"], good["receipt"]["void"]) == (
        "receipt",
        True,
        False,
    )
    assert good["receipt"]["price"] == 0.25


async def waiting_job(app: Penstock) -> str:
    """A job that has slept, and waits for two signals one after another."""

    @app.job("publish")
    async def handler(ctx: JobContext) -> None:
        await ctx.sleep(0)
        await ctx.wait_for("seen", timeout=3600)
        await ctx.wait_for("approved")

    async def waits() -> bool:
        return (await app.get(job.id)).waiting_for == "the signal 'approved'"

    async with app.running():
        job = await app.enqueue("publish")
        await app.signal(job.id, "seen")
        await until(waits, "the job to wait")
    return job.id


def test_a_job_that_waits_says_for_what_and_not_until_when(cli: Cli) -> None:
    app = Penstock(cli.url, durable=False)
    job_id = cli.call(waiting_job(app), app)

    shown = cli("jobs", "show", job_id, "--steps").out
    assert "the signal 'approved'" in shown
    assert "scheduled" not in shown
    assert "waits for the signal 'approved'" in cli("jobs", "list").out

    _, _, table = shown.rpartition("STEP")
    slept, seen = [line.split() for line in table.splitlines()[1:]]
    assert (slept[0], slept[-3]) == ("sleep", "until")
    assert (seen[0], seen[-1]) == ("wait_for:seen", "true")


def test_redrive_keeps_the_steps_unless_from_scratch(cli: Cli, dead: str) -> None:
    app = Penstock(cli.url, durable=False)
    cli("dead-letters", "redrive", dead)
    assert len(cli.call(app.steps(dead), app)) == 3


def test_redrive_from_scratch_drops_the_steps(cli: Cli, dead: str) -> None:
    app = Penstock(cli.url, durable=False)
    cli("dead-letters", "redrive", dead, "--from-scratch")
    assert cli.call(app.steps(dead), app) == []


def test_signal_tells_a_job_once_for_a_key(cli: Cli) -> None:
    job_id = cli.enqueue("anything")
    told = ("jobs", "signal", job_id[-8:], "approved", '{"by": "ops"}', "--key", "k")

    assert cli(*told).out == "sent\n"
    assert cli(*told, "--json").json == {"stored": False}
    assert "is not JSON" in cli("jobs", "signal", job_id, "approved", "{", code=2).err
    assert "cannot be None" in cli("jobs", "signal", job_id, "approved", "null", code=2).err
    cli("jobs", "cancel", job_id)
    assert cli(*told).out == "sent before: it has this key\n"


def test_a_finished_job_takes_no_signals(cli: Cli, dead: str) -> None:
    assert "is failed, and takes no signals" in cli("jobs", "signal", dead, "go", code=1).err


async def emitting(app: Penstock, fails: bool) -> str:
    @app.job("pages", max_retries=0)
    async def handler(ctx: JobContext) -> str:
        await ctx.emit({"pages": 2, "api_key": "geheim"})
        await ctx.step("read", lambda: "text")
        if fails:
            raise ValueError("no use")
        return "done"

    async with app.running():
        job = await app.enqueue("pages")
        await app.wait(job.id, timeout=60)
    return job.id


def test_follow_prints_the_events_of_a_job_to_its_end(cli: Cli) -> None:
    app = Penstock(cli.url, durable=False)
    job_id = cli.call(emitting(app, False), app)

    lines = [line.split() for line in cli("jobs", "follow", job_id).out.splitlines()]

    assert [line[1] for line in lines] == ["emitted", "step", "end"]
    assert (lines[1][2], lines[2][2:]) == ("read", ["completed", '"done"'])
    assert "geheim" not in " ".join(lines[0])
    events = cli("jobs", "follow", job_id, "--json").lines
    assert [str(event["position"]) for event in events] == [line[0] for line in lines]
    assert events[0]["data"] == {"pages": 2, "api_key": "geheim"}
    assert cli("jobs", "follow", job_id, "--after", lines[0][0], "--json").lines == events[1:]


def test_follow_of_a_job_that_failed_exits_with_1(cli: Cli) -> None:
    app = Penstock(cli.url, durable=False)
    job_id = cli.call(emitting(app, True), app)

    followed = cli("jobs", "follow", job_id, code=1)

    assert followed.out.splitlines()[-1].split()[1:3] == ["end", "failed"]


def test_follow_prints_each_event_when_it_happens(cli: Cli) -> None:
    app = Penstock(cli.url, durable=False)
    job_id = cli.call(waiting_job(app), app)

    following = cli.start("jobs", "follow", job_id)
    following.said("wait_for:seen")  # through a pipe, while the job goes on
    cli("jobs", "cancel", job_id)
    assert following.end().code == 1
    assert following.out.splitlines()[-1].split()[1:] == ["end", "cancelled"]


def test_rerun_from_a_step_takes_over_what_came_before(cli: Cli, dead: str) -> None:
    app = Penstock(cli.url, durable=False)

    new = cli("jobs", "rerun", dead, "--from-step", "plan#2").out.strip()

    assert [step.name for step in cli.call(app.steps(new), app)] == ["plan"]
    refused = cli(
        "jobs", "rerun", dead, "--from-step", "fail", code=2
    )  # it raised, and has no record
    assert "recorded no step 'fail'; there are 'plan'" in refused.err
