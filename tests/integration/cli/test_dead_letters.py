"""`penstock dead-letters`."""

import pytest

from tests.support.cli import Cli

NOBODY = "0" * 32


@pytest.fixture
def dead(cli: Cli) -> list[str]:
    """Three dead letters, oldest first: two of kind fail, one of kind add and tenant acme."""
    ids = [
        cli.enqueue("fail", {"message": "one"}),
        cli.enqueue("fail", {"message": "two"}),
        cli.enqueue("add", {"a": "not a number"}, tenant="acme"),
    ]
    cli("worker", "shop:app", "--drain")
    return ids


def states(cli: Cli, ids: list[str]) -> list[str]:
    return [str(cli.job(job_id).state) for job_id in ids]


def test_list_shows_what_failed_and_why(cli: Cli, dead: list[str]) -> None:
    cli.enqueue("add")
    lines = cli("dead-letters", "list").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == dead[::-1]
    assert lines[2].endswith("ValueError: one")

    def ids(*filters: str) -> list[str]:
        return [job["id"] for job in cli("dead-letters", "list", "--json", *filters).json]

    assert ids("--kind", "f*") == [dead[1], dead[0]]
    assert ids("--tenant", "acme") == [dead[2]]
    assert ids("--error", "ValueError") == [dead[1], dead[0]]
    assert ids("--limit", "1", "--before", dead[2]) == [dead[1]]


def test_an_empty_list_says_so(cli: Cli) -> None:
    cli.enqueue("add")
    assert cli("dead-letters", "list").err == "no dead letters\n"
    assert cli("dead-letters", "list", "--json").json == []


def test_show_is_for_dead_letters_only(cli: Cli, dead: list[str]) -> None:
    assert "ValueError: one" in cli("dead-letters", "show", dead[0]).out
    assert cli("dead-letters", "show", dead[0], "--json").json["payload"] == {"message": "one"}
    alive = cli.enqueue("add")
    assert "is queued, not a dead letter" in cli("dead-letters", "show", alive, code=3).err
    cli("dead-letters", "show", NOBODY, code=3)


def test_redrive_by_id(cli: Cli, dead: list[str]) -> None:
    done = cli("dead-letters", "redrive", dead[0], NOBODY, code=3)
    assert done.out == "redriven 1 dead letter\n"
    assert NOBODY in done.err
    assert states(cli, dead) == ["queued", "failed", "failed"]
    assert len(cli.job(dead[0]).history) == 3, "two runs, and that it was redriven"


def test_the_beginning_or_end_of_an_id_will_do(cli: Cli, dead: list[str]) -> None:
    assert cli("dead-letters", "show", dead[0][-8:], "--json").json["id"] == dead[0]
    assert cli("dead-letters", "redrive", dead[0][-8:], "--json").json["ids"] == [dead[0]]
    gone = cli("dead-letters", "discard", dead[1][-8:], "--yes", "--json").json
    assert gone["ids"] == [dead[1]]
    refused = cli("dead-letters", "redrive", dead[0][-8:], code=3)
    assert "none of the newest 1,000 dead letters has" in refused.err, "it is queued again"


def test_redrive_by_filter(cli: Cli, dead: list[str]) -> None:
    found = cli("dead-letters", "redrive", "--error", "ValueError", "--json").json
    assert found["count"] == 2
    assert sorted(found["ids"]) == sorted(dead[:2])
    assert states(cli, dead) == ["queued", "queued", "failed"]


def test_redrive_all(cli: Cli, dead: list[str]) -> None:
    assert cli("dead-letters", "redrive", "--all").out == "redriven 3 dead letters\n"
    assert states(cli, dead) == ["queued"] * 3


@pytest.mark.parametrize("verb", ["redrive", "discard"])
def test_which_ones_must_be_said(cli: Cli, dead: list[str], verb: str) -> None:
    done = cli("dead-letters", verb, code=2)
    assert "--all" in done.err
    assert "not both" in cli("dead-letters", verb, dead[0], "--all", code=2).err
    assert states(cli, dead) == ["failed"] * 3


def test_discard_with_yes(cli: Cli, dead: list[str]) -> None:
    done = cli("dead-letters", "discard", "--kind", "fail", "--yes")
    assert done.out == "discarded 2 dead letters\n"
    left = [job["id"] for job in cli("dead-letters", "list", "--json").json]
    assert left == [dead[2]]
    found = cli("dead-letters", "discard", dead[2], "-y", "--json").json
    assert found == {"count": 1, "ids": [dead[2]], "refused": []}


def test_discard_refuses_when_nobody_can_be_asked(cli: Cli, dead: list[str]) -> None:
    done = cli("dead-letters", "discard", "--all", stdin="y\n", code=2)
    assert "--yes" in done.err
    assert states(cli, dead) == ["failed"] * 3


def test_discard_asks_on_a_terminal(cli: Cli, dead: list[str]) -> None:
    shown = cli.on_terminal("dead-letters", "discard", "--all", typed="n\n")
    assert "Discard 3 dead letters permanently?" in shown
    assert "nothing discarded" in shown
    assert states(cli, dead) == ["failed"] * 3
    shown = cli.on_terminal("dead-letters", "discard", "--all", typed="y\n")
    assert "discarded 3 dead letters" in shown
    assert cli("dead-letters", "list", "--json").json == []
