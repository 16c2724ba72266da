"""`penstock jobs list|show|cancel`."""

import json
import re

import pytest

from penstock import Penstock
from tests.support.cli import Cli

NOBODY = "0" * 32


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_list_is_newest_first_and_filtered(cli: Cli) -> None:
    old = cli.enqueue("add")
    mail = cli.enqueue("mail.send", tenant="acme")
    logged = cli.enqueue("add", log="t1")
    header, *rows = table(cli("jobs", "list").out)
    assert header == ["ID", "KIND", "STATE", "TENANT", "RUNS", "AGE", "ABOUT"]
    assert [row[0] for row in rows] == [logged, mail, old]
    assert rows[1][1:4] == ["mail.send", "queued", "acme"]

    def ids(*filters: str) -> list[str]:
        return [job["id"] for job in cli("jobs", "list", "--json", *filters).json]

    assert ids("--kind", "mail.*") == [mail]
    assert ids("--tenant", "default") == [logged, old]
    assert ids("--log", "t1") == [logged]
    assert ids("--state", "queued", "--state", "running") == [logged, mail, old]
    assert ids("--state", "completed") == []
    assert ids("--limit", "2") == [logged, mail]
    assert ids("--priority", "low") == ids("--lane", "api") == []
    assert ids("--priority", "medium", "--enqueued-after", "2020-01-31") == [logged, mail, old]
    assert ids("--enqueued-before", "2020-01-31T09:00Z") == []
    wrong = cli("jobs", "list", "--enqueued-after", "soon", code=2)
    assert "--enqueued-after must be a time such as" in wrong.err
    assert ids("--before", mail) == [old]


def test_list_says_how_to_go_on(cli: Cli) -> None:
    first = [cli.enqueue("add") for _ in range(3)][1]
    done = cli("jobs", "list", "--limit", "2")
    assert f"--before {first}" in done.err
    assert "--before" not in cli("jobs", "list", "--limit", "4").err


def test_a_page_after_a_job_that_is_gone_is_not_found(cli: Cli) -> None:
    cli.enqueue("add")
    assert NOBODY in cli("jobs", "list", "--before", NOBODY, code=3).err


def test_list_without_jobs_says_so_beside_the_output(cli: Cli) -> None:
    job_id = cli.enqueue("add")
    done = cli("jobs", "list", "--state", "failed")
    assert (done.out, done.err) == ("", "no jobs match\n")
    assert cli("jobs", "list", "--state", "failed", "--json").json == []
    assert job_id in cli("jobs", "list").out


def test_list_shows_no_payloads_and_results(cli: Cli) -> None:
    cli.enqueue("mail.send", {"to": "secret@example.org"})
    cli("worker", "shop:app", "--drain")
    for form in ([], ["--json"]):
        out = cli("jobs", "list", *form).out
        assert "completed" in out
        assert "secret" not in out


def test_list_says_what_a_job_waits_for(cli: Cli) -> None:
    cli.enqueue("nobody.knows")
    cli.enqueue("add", delay=3020)
    later, unknown = cli("jobs", "list").out.splitlines()[1:]
    assert later.endswith("due in 50 min")
    assert unknown.endswith("waits for a worker process that handles kind 'nobody.knows'")


def test_show_has_payload_and_result(cli: Cli) -> None:
    job_id = cli.enqueue("add", {"a": 40}, key="answer")
    cli("worker", "shop:app", "--drain")
    shown = dict(line.split(maxsplit=1) for line in cli("jobs", "show", job_id).out.splitlines())
    assert shown["id"] == job_id
    assert shown["state"] == "completed"
    assert shown["key"] == "answer"
    assert shown["payload"] == '{"a": 40}'
    assert shown["result"] == '{"sum": 42}'
    assert shown["runs"] == "1 of 4"
    job = cli("jobs", "show", job_id, "--json").json
    assert (job["payload"], job["result"]) == ({"a": 40}, {"sum": 42})


def test_show_tells_how_every_run_ended(cli: Cli) -> None:
    job_id = cli.enqueue("fail", {"message": "no luck"})
    logged = cli.start("worker", "shop:app", "--drain", "-v").end().err
    assert f"job {job_id} (fail) failed permanently: ValueError: no luck at shop.py:" in logged
    assert "raise ValueError(message)" in logged, "-v logs the traceback"
    shown = cli("jobs", "show", job_id).out
    runs = [line.split() for line in shown.splitlines() if line.strip().startswith(("1 ", "2 "))]
    assert [run[1] for run in runs] == ["retry", "failed"]
    assert shown.count("ValueError: no luck") == 4  # its error, two runs, the traceback
    assert "shop.py" in shown, "where it failed"
    history = cli("jobs", "show", job_id, "--json").json["history"]
    assert [record["outcome"] for record in history] == ["retry", "failed"]


def test_show_of_a_missing_job_is_exit_code_3(cli: Cli) -> None:
    cli.enqueue("add")
    done = cli("jobs", "show", NOBODY, "--json", code=3)
    assert done.out == ""
    assert done.error == {"type": "JobNotFound", "message": f"no job with id '{NOBODY}'"}


def test_show_takes_the_beginning_or_end_of_an_id(cli: Cli) -> None:
    first, second = cli.enqueue("add"), cli.enqueue("mail.send")
    assert cli("jobs", "show", first[-6:], "--json").json["id"] == first
    # Ids that are made in one moment follow each other.
    differs = next(n for n in range(1, 33) if first[:n] != second[:n])
    assert cli("jobs", "show", second[:differs], "--json").json["id"] == second
    common = first[:6]
    assert second.startswith(common), "made within the same hours"
    done = cli("jobs", "show", common, code=2)
    assert done.err == f"error: 2 jobs have {common!r} in their id; give more of it\n"
    assert "no job with id" in cli("jobs", "show", first[-5:], code=3).err
    assert "none of the newest 1,000 jobs" in cli("jobs", "show", "abcdefgh", code=3).err


def test_every_command_for_jobs_takes_the_beginning_or_end_of_an_id(cli: Cli) -> None:
    first, second = cli.enqueue("add"), cli.enqueue("add")
    done = cli("jobs", "cancel", first[-8:], second[-8:], first)
    assert done.out.splitlines() == [f"{first}  cancelled", f"{second}  cancelled"]
    again = cli("jobs", "rerun", first[-8:]).out.strip()
    assert cli.job(again).rerun_of == first
    assert f'"{first}"' in cli("jobs", "watch", first[-8:], "--json", code=1).out
    refused = cli("jobs", "cancel", again, "abcdefgh", code=3)
    assert refused.err == "error: none of the newest 1,000 jobs has 'abcdefgh' in its id\n"
    assert cli.job(again).state == "queued", "nothing is done where an id is not understood"


def test_cancel_says_what_became_of_each(cli: Cli) -> None:
    finished = cli.enqueue("add")
    cli("worker", "shop:app", "--drain")
    queued = cli.enqueue("add")
    done = cli("jobs", "cancel", queued, finished, NOBODY, code=3)
    assert done.out.splitlines() == [f"{queued}  cancelled", f"{finished}  already completed"]
    assert NOBODY in done.err
    assert cli.job(queued).state == "cancelled"
    assert cli.job(finished).state == "completed"
    again = cli("jobs", "cancel", queued, "--json").json
    assert (again["count"], again["refused"]) == (
        0,
        [{"id": queued, "why": "it is already cancelled"}],
    )


def test_cancel_ends_a_running_job(cli: Cli) -> None:
    cli.worker()
    job_id = cli.enqueue("hold")
    watch = cli.start("jobs", "watch", job_id)
    watch.said("running")
    assert cli("jobs", "cancel", job_id, "--json").json["ids"] == [job_id]
    assert watch.end().code == 1


@pytest.mark.parametrize("width", [8, 200])
def test_results_are_readable_whatever_their_size(cli: Cli, width: int) -> None:
    payload = {"name": "x" * width, "more": [1, 2]}
    job_id = cli.enqueue("add", payload)
    lines = cli("jobs", "show", job_id).out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("payload"))
    text = "\n".join([lines[start].removeprefix("payload"), *lines[start + 1 :]])
    assert json.loads(text) == payload


def test_a_large_queue_is_listed_by_pages(cli: Cli) -> None:
    app = Penstock(cli.url, durable=False)
    jobs = cli.call(app.enqueue_many("add", [{"a": n} for n in range(25)]), app)
    seen: list[str] = []
    while page := cli(
        "jobs", "list", "--json", "--limit", "10", *(["--before", seen[-1]] if seen else [])
    ).json:
        seen += [job["id"] for job in page]
    assert seen == [job.id for job in jobs][::-1]


def test_rerun_of_a_job_is_a_new_one(cli: Cli) -> None:
    old = cli.enqueue("add", {"a": 40}, key="answer", tenant="acme")
    new = cli("jobs", "rerun", old).out.strip()
    assert new != old
    shown = cli("jobs", "show", new, "--json").json
    assert (shown["payload"], shown["rerun_of"], shown["tenant"]) == ({"a": 40}, old, "acme")
    assert re.search(f"rerun of +{old}", cli("jobs", "show", new).out)
    assert shown["key"] is None
    assert "no job with id" in cli("jobs", "rerun", NOBODY, code=3).err
    reserved = cli.enqueue("ingest.parse")
    assert "retry the document" in cli("jobs", "rerun", reserved, code=2).err


def test_people_are_not_shown_secrets_and_programs_get_all(cli: Cli) -> None:
    payload = {"api_key": "hunter2", "shoe": "hunter2", "url": "https://kim:hunter2@example.org/"}
    job_id = cli.enqueue("nobody.knows", payload)
    hide = {"PENSTOCK_HIDDEN_NAMES": "hat, shoe"}
    shown = cli("jobs", "show", job_id, environment=hide).out
    assert "hunter2" not in shown
    assert '"api_key": "***"' in shown
    assert "https://***@example.org/" in shown
    assert '"shoe": "hunter2"' in cli("jobs", "show", job_id).out
    assert cli("jobs", "show", job_id, "--json").json["payload"] == payload


def test_all_that_match_are_cancelled(cli: Cli) -> None:
    cli.enqueue("mail.send")
    low = [cli.enqueue("add", priority="low") for _ in range(2)]
    kept = cli.enqueue("add")
    assert cli("jobs", "cancel", "--kind", "mail.*").out == "cancelled 1 job\n"
    done = cli("jobs", "cancel", "--priority", "low", "--json").json
    assert (done["count"], sorted(done["ids"])) == (2, sorted(low))
    assert cli("jobs", "show", kept, "--json").json["state"] == "queued"
    assert "give job ids" in cli("jobs", "cancel", code=2).err
    assert "not both" in cli("jobs", "cancel", kept, "--all", code=2).err
    cli("jobs", "cancel", "--all")
    assert cli("jobs", "show", kept, "--json").json["state"] == "cancelled"
