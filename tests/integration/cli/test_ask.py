"""`penstock ask`: a question, its answer as it is written, and what that is founded on."""

import json
import shutil
import signal
import threading
from pathlib import Path

import pytest

from tests.support.answers import DOCUMENTS, QUESTION, content
from tests.support.answers_config import MANY_WORDS, NAMES, settings
from tests.support.cli import Cli, wait_until
from tests.support.config_file import config_text
from tests.support.embedder import EmbedderServer
from tests.support.model_server import ANSWER, PLAN, ModelServer, Reply

FIRST = "An overshot wheel is turned by the weight of water in its buckets"


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a queue and documents, to be copied."""
    cli = Cli(tmp_path_factory.mktemp("ingested"))
    with EmbedderServer() as embedder:
        configure(cli, embedder)
        for name in NAMES:
            (cli.folder / f"{name}.txt").write_text(DOCUMENTS[name])
        cli("ingest", *(f"{name}.txt" for name in NAMES))
    return cli.folder


@pytest.fixture
def cli(cli: Cli, ingested: Path, embedder: EmbedderServer) -> Cli:
    shutil.copytree(ingested, cli.folder, dirs_exist_ok=True)
    configure(cli, embedder)
    return cli


@pytest.fixture
def modelled(cli: Cli, embedder: EmbedderServer, model: ModelServer) -> Cli:
    content(model)
    configure(cli, embedder, model)
    return cli


def configure(cli: Cli, embedder: EmbedderServer, model: ModelServer | None = None) -> None:
    toy = {"provider": "openai", "base_url": embedder.url("/v1"), "model": "toy", "dimensions": 8}
    known = {"embedder": toy, **settings(model)}
    (cli.folder / "penstock.yaml").write_text(config_text(known))


def test_without_a_model_the_answer_is_sentences_and_where_they_stand(cli: Cli) -> None:
    done = cli("ask", QUESTION)
    lines = done.out.splitlines()
    assert lines[0] == f"{FIRST}. [1]"
    assert any(line.startswith("[1] wheel.txt") for line in lines)
    assert f"    {FIRST}." in done.out
    assert lines[-2:] == ["notes:", "  - no model is configured for answers"]
    assert "\x1b" not in done.out + done.err
    told = done.err.splitlines()
    assert told[0].startswith("answer ")
    assert told[1] == f"planned: {QUESTION}"
    assert told[2] == f"looking, round 1: {QUESTION}"
    assert told[3].startswith("found 3 passages in wheel.txt; ")
    assert told[4] == "choosing sentences"


def test_what_is_not_found_is_said_and_is_no_failure(cli: Cli) -> None:
    done = cli("ask", "Who owns the moon rocket?", "--collection", "other", "--no-stream")
    assert done.out.startswith("Nothing was found that answers this question.\n")
    assert "\nnot found:\n  - owns\n  - moon\n  - rocket\n" in done.out
    assert "[1]" not in done.out


def test_text_comes_as_the_model_writes_it(modelled: Cli, model: ModelServer) -> None:
    seen = threading.Event()
    text = f"{MANY_WORDS} It is known. And more [1]."
    model.script[ANSWER] = Reply(text, pause=0.05, until=seen.is_set)
    running = modelled.start("ask", QUESTION)
    wait_until(lambda: "Word 3" in running.out, "some of the text")
    seen.set()  # its end was not sent before
    done = running.end()
    assert done.code == 0
    text = done.out.split("\n\n")[0]
    assert text == f"{MANY_WORDS} It is known. And more [1]."
    assert "without a citation:\n  - It is known.\n" in done.out
    assert "notes:" not in done.out


def test_json_is_an_event_a_line_or_one_answer(modelled: Cli, model: ModelServer) -> None:
    told = modelled("ask", QUESTION, "--json").lines
    events = [one["event"] for one in told]
    assert (events[0], events[-1]) == ("asked", "summary")
    assert {"plan", "searching", "evidence", "writing", "token", "answer", "done"} <= set(events)
    summary = told[-1]
    assert (summary["state"], summary["mode"]) == ("completed", "model")
    assert summary["answer_id"] == told[0]["answer_id"]
    whole = modelled("ask", QUESTION, "--json", "--no-stream").json
    assert whole["text"] == summary["text"]
    shown = modelled("answers", "show", whole["answer_id"], "--json").json
    assert shown["evidence"] == whole["evidence"]
    listed = modelled("answers", "list", "--json").json
    assert [one["answer_id"] for one in listed] == [whole["answer_id"], summary["answer_id"]]


def test_ctrl_c_leaves_it_to_others_and_says_how_to_read_it(
    modelled: Cli, model: ModelServer
) -> None:
    left = threading.Event()
    model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05, until=left.is_set)
    running = modelled.start("ask", QUESTION)
    wait_until(lambda: "Word 1" in running.out, "some of the text")
    running.send(signal.SIGINT)
    done = running.end()
    left.set()
    assert done.code == 130
    assert "Traceback" not in done.err
    assert "`penstock worker` continues it" in done.err
    [listed] = modelled("answers", "list", "--json").json
    assert listed["state"] == "running"
    assert f"penstock answers show {listed['answer_id']}" in done.err
    worker = modelled.start("worker")
    wait_until(lambda: len(model.asked(ANSWER)) > 1, "the model to be asked again")

    def over() -> bool:
        found = modelled("answers", "show", listed["answer_id"], "--json").json
        return bool(found["state"] == "completed" and found["mode"] == "model")

    wait_until(over, "the answer to be made")
    model.script[PLAN] = Reply(hang=True)
    running = modelled.start("ask", QUESTION, "--json")
    running.said('"asked"')
    running.send(signal.SIGINT)
    assert json.loads(running.end().out.splitlines()[-1])["event"] == "left"
    running = modelled.start("ask", QUESTION)
    running.said("answer ")
    running.send(signal.SIGINT)
    assert "other workers continue" in running.end().err
    worker.send(signal.SIGTERM)


def test_one_that_is_cancelled_elsewhere_ends_with_code_1(
    modelled: Cli, model: ModelServer
) -> None:
    model.script[ANSWER] = Reply(hang=True)
    running = modelled.start("ask", QUESTION)
    wait_until(lambda: bool(model.asked(ANSWER)), "the model to be asked")
    [listed] = modelled("answers", "list", "--json").json
    assert modelled("answers", "cancel", listed["answer_id"]).out == "cancelled\n"
    done = running.end()
    assert done.code == 1
    assert done.err.splitlines()[-1] == "cancelled"


def test_answers_are_listed_and_shown(cli: Cli) -> None:
    assert "no answers" in cli("answers", "list").err
    cli("ask", QUESTION)
    listed = cli("answers", "list").out.splitlines()
    assert listed[0].split() == ["ID", "STATE", "MODE", "AGE", "QUESTION"]
    answer_id = listed[1].split()[0]
    shown = cli("answers", "show", answer_id).out
    assert f"question  {QUESTION}\n" in shown
    assert f"\n\n{FIRST}. [1]\n\n[1] wheel.txt" in shown
    again = cli("answers", "cancel", answer_id, "--json").json
    assert again["state"] == "completed", "what is over stays as it is"


def test_wrong_usage_and_unknown_ids_have_their_codes(cli: Cli) -> None:
    for arguments in (["ask", " "], ["ask", "a", "--sources", "moon"], ["ask", "a", "--seconds=0"]):
        assert cli(*arguments, code=2).err.startswith("error: ")
    for command in ("show", "cancel"):
        assert "no answer" in cli("answers", command, "0" * 32, code=3).err
    assert cli("answers", "list", "--tenant", "other", "--json").json == []


def test_a_terminal_sees_what_happens_and_the_answer(cli: Cli) -> None:
    shown = cli.on_terminal("ask", QUESTION)
    for text in ("planned", "looking, round 1", f"{FIRST}. [1]", "wheel.txt", "notes:"):
        assert text in shown, shown
    assert "\x1b[2m" in shown, "dim"
