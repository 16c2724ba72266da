"""`penstock schedules`."""

import json

from tests.support.cli import Cli


def test_a_schedule_is_made_shown_paused_run_and_removed(cli: Cli) -> None:
    at = ("--queue", cli.url)
    when = ("--cron", "0 3 * * *", "--timezone", "Europe/Zurich")
    made = cli("schedules", "set", "nightly", "report", '{"days": 1}', *when, "--json", *at)
    told = json.loads(made.out)
    assert (told["payload"], told["timezone"], told["source"]) == (
        {"days": 1},
        "Europe/Zurich",
        "row",
    )
    listed = cli("schedules", *at)
    assert "0 3 * * * (Europe/Zurich)" in listed.out
    assert json.loads(cli("schedules", "list", "--json", *at).out) == [told]
    assert "paused" in cli("schedules", "pause", "nightly", *at).out
    shown = cli("schedules", "show", "nightly", *at)
    assert 'payload    {"days": 1}' in shown.out
    assert "next tick  paused" in shown.out
    job = cli("schedules", "run", "nightly", *at).out.strip()
    assert json.loads(cli("jobs", "show", job, "--json", *at).out)["kind"] == "report"
    assert not json.loads(cli("schedules", "resume", "nightly", "--json", *at).out)["paused"]
    assert cli("schedules", "remove", "nightly", *at).out == "nightly  removed\n"
    assert cli("schedules", "list", *at).err == "no schedules\n"


def test_what_is_wrong_is_told(cli: Cli) -> None:
    at = ("--queue", cli.url)
    wrong = cli("schedules", "set", "x", "report", "--cron", "0 25 * * *", *at, code=2)
    assert "Bad hour" in wrong.err
    cli("schedules", "set", "x", "report", "{", "--every", "60", *at, code=2)
    assert "no schedule 'x'" in cli("schedules", "pause", "x", *at, code=3).err
