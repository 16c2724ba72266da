"""`penstock lanes`, and what `penstock status` says of lanes."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import Job, JobContext, Penstock
from penstock.errors import AuthenticationError, RateLimited, Unavailable
from tests.support.cli import Cli
from tests.support.waiting import PATIENCE

LANES: dict[str, dict[str, Any]] = {
    "slow": {"min_interval_seconds": 50.0, "max_parallel": 2},
    "free": {"min_interval_seconds": 0, "max_parallel": 3},
    "daily": {"min_interval_seconds": 0, "max_parallel": 1, "requests_per_day": 1},
    "family": {"min_interval_seconds": 0, "max_parallel": 4},
    "child": {"min_interval_seconds": 0, "max_parallel": 2, "parent": "family"},
}
ERRORS: dict[str, Callable[[], Exception]] = {
    "down": lambda: Unavailable("no answer"),
    "refused": lambda: AuthenticationError("wrong key"),
    "limited": lambda: RateLimited(retry_after=500),
}


def build(cli: Cli) -> Penstock:
    """An app with a job in every lane; each ends as its payload says."""
    app = Penstock(cli.url, durable=False, lanes=LANES, retry_base_seconds=0.01)

    def register(lane: str) -> None:
        @app.job(f"in.{lane}", lane=lane, max_retries=20)
        async def handler(ctx: JobContext, ending: str = "") -> None:
            if ending:
                raise ERRORS[ending]()

    for lane in LANES:
        register(lane)
    return app


def enqueue(cli: Cli, lane: str, count: int = 1, ending: str = "") -> list[Job]:
    app = build(cli)
    return cli.call(app.enqueue_many(f"in.{lane}", [{"ending": ending}] * count), app)


def work(cli: Cli, until: Callable[[Penstock], Awaitable[bool]]) -> None:
    """Run jobs in this process until the condition holds."""
    app = build(cli)

    async def inside() -> None:
        async with app.running(), asyncio.timeout(PATIENCE):
            while not await until(app):  # noqa: ASYNC110 (a condition, not an event)
                await asyncio.sleep(0.01)

    asyncio.run(inside())


def work_until_lane(cli: Cli, name: str, **wanted: Any) -> None:
    """Run jobs until the lane looks like this."""

    async def reached(app: Penstock) -> bool:
        (lane,) = [lane for lane in await app.lane_infos() if lane.name == name]
        return all(getattr(lane, field) == value for field, value in wanted.items())

    work(cli, reached)


def row(cli: Cli, name: str) -> str:
    (found,) = [line for line in cli("lanes").out.splitlines() if line.split()[0] == name]
    return found


def lane(cli: Cli, name: str) -> dict[str, Any]:
    (found,) = [lane for lane in cli("lanes", "--json").json if lane["name"] == name]
    return dict(found)


def test_limits_use_and_waiting_jobs_are_shown(cli: Cli) -> None:
    enqueue(cli, "slow", 3)
    work_until_lane(cli, "slow", used_today=1, in_flight=0)
    shown = cli("lanes").out
    assert cli("lanes", "list").out == shown
    assert [one["name"] for one in cli("lanes", "list", "--json").json] == ["slow"]
    header, line = shown.splitlines()
    assert header.split("  ")[0] == "LANE"
    for title in ("IN USE", "STARTS/S", "WAITING", "BREAKER", "BLOCKED", "TODAY"):
        assert title in header
    assert line.split() == ["slow", "0", "of", "2", "0.0196", "2", "closed", "-", "1"]
    found = lane(cli, "slow")
    assert found["starts_per_second"] == pytest.approx(1 / 51)
    assert (found["max_parallel"], found["in_flight"], found["waiting"]) == (2, 0, 2)
    assert (found["breaker"], found["blocked_why"], found["trouble"]) == ("closed", None, None)


def test_parents_are_shown_when_there_are_any(cli: Cli) -> None:
    enqueue(cli, "free")
    assert "PARENT" not in cli("lanes").out
    enqueue(cli, "child")
    assert row(cli, "child").split()[1] == "family"
    assert row(cli, "free").split()[1] == "-"
    assert "no limit" in row(cli, "free")


def test_without_lanes_it_says_so_beside_the_output(cli: Cli) -> None:
    cli.enqueue("add")
    done = cli("lanes")
    assert (done.out, done.err) == ("", "no lanes in use\n")
    assert cli("lanes", "--json").json == []


def test_a_paused_lane_starts_nothing_until_it_is_resumed(cli: Cli) -> None:
    (job,) = enqueue(cli, "free")
    (other,) = enqueue(cli, "child")
    assert cli("lanes", "pause", "free").out == "free  paused\n"
    assert row(cli, "free").split()[-2:] == ["paused", "0"]
    found = lane(cli, "free")
    assert (found["blocked_why"], found["blocked_until"]) == ("paused", None)

    async def other_is_done(app: Penstock) -> bool:
        return (await app.get(other.id)).state == "completed"

    work(cli, other_is_done)
    assert cli.job(job.id).state == "queued"

    assert cli("lanes", "resume", "free", "--json").json == {"resumed": ["free"]}
    assert lane(cli, "free")["blocked_why"] is None

    async def is_done(app: Penstock) -> bool:
        return (await app.get(job.id)).state == "completed"

    work(cli, is_done)


def test_an_open_breaker_is_shown_and_can_be_reset(cli: Cli) -> None:
    enqueue(cli, "free", 2, "down")
    work_until_lane(cli, "free", breaker="open", in_flight=0)
    assert "open, " in row(cli, "free")
    found = lane(cli, "free")
    assert found["retry_at"] < time.time() + 300
    assert found["trouble"] == "breaker open"

    assert cli("lanes", "reset", "free").out == "free  reset\n"
    found = lane(cli, "free")
    assert (found["breaker"], found["retry_at"], found["trouble"]) == ("closed", None, None)


def test_refused_credentials_block_until_resumed(cli: Cli) -> None:
    enqueue(cli, "free", 3, "refused")
    work_until_lane(cli, "free", blocked_why="credentials", in_flight=0)
    assert "credentials" in row(cli, "free")
    assert lane(cli, "free")["blocked_until"] is None, "no time lifts it"
    cli("lanes", "resume", "free")
    assert lane(cli, "free")["trouble"] is None


def test_a_rate_limited_lane_says_for_how_long(cli: Cli) -> None:
    enqueue(cli, "free", 1, "limited")
    work_until_lane(cli, "free", blocked_why="rate limited", in_flight=0)
    assert "rate limited, 8 min more" in row(cli, "free")
    assert time.time() < lane(cli, "free")["blocked_until"] < time.time() + 501


def test_the_daily_limit_is_shown(cli: Cli) -> None:
    enqueue(cli, "daily", 2)
    work_until_lane(cli, "daily", used_today=1, in_flight=0)
    assert row(cli, "daily").endswith("1 of 1")
    assert lane(cli, "daily")["trouble"] == "daily limit"
    # As it should be: the command line knows the lanes too.
    (cli.folder / "penstock.yaml").write_text(json.dumps({"lanes": LANES}))
    cli("lanes", "reset", "daily")
    assert row(cli, "daily").endswith("0 of 1")


def test_several_lanes_at_once_and_one_that_is_not_there(cli: Cli) -> None:
    enqueue(cli, "free")
    enqueue(cli, "slow")
    done = cli("lanes", "pause", "free", "nowhere", "slow", "free", code=3)
    assert done.out == "free  paused\nslow  paused\n", "the others are paused all the same"
    assert done.err.startswith("error: no lane 'nowhere' is in use")
    done = cli("lanes", "reset", "nowhere", "--json", code=3)
    assert json.loads(done.out) == {"reset": []}
    assert done.error["type"] == "NotFound"


def test_a_lane_must_be_named(cli: Cli) -> None:
    enqueue(cli, "free")
    assert "penstock lanes pause --help" in cli("lanes", "pause", code=2).err


def test_options_may_stand_before_the_command(cli: Cli) -> None:
    enqueue(cli, "free")
    elsewhere = {"PENSTOCK_QUEUE": "sqlite:///elsewhere.db"}
    for arguments in (
        ["--queue", cli.url, "--json", "lanes", "pause", "free"],
        ["lanes", "--queue", cli.url, "--json", "pause", "free"],
        ["--json", "lanes", "--queue", cli.url, "pause", "free"],
        ["--queue", "sqlite:///no.db", "lanes", "pause", "free", "--queue", cli.url, "--json"],
    ):
        assert cli(*arguments, environment=elsewhere).json == {"paused": ["free"]}
    assert cli("--queue", cli.url, "lanes", environment=elsewhere).out
    assert "elsewhere.db" in cli("lanes", environment=elsewhere, code=3).err


def test_a_name_a_terminal_would_obey_is_printed_harmlessly(cli: Cli) -> None:
    app = Penstock(cli.url, durable=False)
    app.job("odd", lane=lambda payload: payload["lane"])(lambda ctx, lane: None)
    cli.call(app.enqueue("odd", {"lane": "host:a b[bold]"}), app)
    assert "host:a b[bold]" in cli("lanes").out
    assert "host:a b[bold]" in cli.on_terminal("lanes")


def test_on_a_terminal_trouble_is_coloured(cli: Cli) -> None:
    enqueue(cli, "free")
    cli("lanes", "pause", "free")
    shown = cli.on_terminal("lanes")
    assert "\x1b[35mpaused" in shown
    assert "\x1b" not in cli.on_terminal("lanes", environment={"NO_COLOR": "1"})


def test_status_names_lanes_that_need_attention(cli: Cli) -> None:
    enqueue(cli, "child")
    assert "- breaker open" not in cli("status").out
    assert cli("status", "--json").json["lanes"] == []
    enqueue(cli, "free", 2, "down")
    work_until_lane(cli, "free", breaker="open", in_flight=0)
    enqueue(cli, "slow", 3)
    cli("lanes", "pause", "slow")
    said = cli("status").out.splitlines()
    assert "needs attention:" in said
    assert any(line.startswith("- breaker open: free, for ") for line in said)
    todo = "3 jobs waiting: to continue, penstock lanes resume slow"
    assert f"- paused: slow; {todo}" in said
    troubled = cli("status", "--json").json["lanes"]
    assert [lane["name"] for lane in troubled] == ["free", "slow"]


def test_limits_are_set_and_unset(cli: Cli) -> None:
    enqueue(cli, "slow")
    before = lane(cli, "slow")
    said = cli("lanes", "set", "slow", "--max-parallel", "3", "--requests-per-day", "50").out
    assert said.startswith("slow  one start every ")
    assert "3 in parallel, 50 a day (overridden: max_parallel 3, requests_per_day 50)" in said
    shown = lane(cli, "slow")
    assert (shown["max_parallel"], shown["per_day"], shown["overridden"]) == (3, 50, True)
    assert "OVERRIDES" in cli("lanes").out
    assert "no limit given" in cli("lanes", "set", "slow", code=2).err
    assert "go together" in cli("lanes", "set", "slow", "--interval-seconds", "5", code=2).err
    cli("lanes", "set", "nobody", "--max-parallel", "3", code=3)

    assert "(as configured)" in cli("lanes", "unset", "slow").out
    after = lane(cli, "slow")
    assert (after["max_parallel"], after["per_day"]) == (before["max_parallel"], before["per_day"])
    assert "OVERRIDES" not in cli("lanes").out
