"""No block of the docs is left out: each is run by a test, or marked with the reason why not."""

import configparser
import json
import re
import shlex
import tomllib
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import typer

from penstock import Penstock
from penstock.cli import cli
from penstock.model.settings import EngineConfig
from tests.docs.blocks import (
    NOT_RUN,
    PAGES,
    ROOT,
    RUN_BY,
    SHOWN,
    Block,
    all_blocks,
    blocks_of,
    name,
    runner_of,
)
from tests.docs.commands import run
from tests.support.database_servers import PostgresServer

HERE = Path(__file__).parent
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def where(block: Block) -> str:
    return block.where


def test_every_block_is_run_or_marked_with_a_reason() -> None:
    left_out = [
        block.where
        for block in all_blocks()
        if runner_of(block) is None and block.language != SHOWN and block.mark not in NOT_RUN
    ]
    assert left_out == [], "name the test in tests/docs/blocks.py, or the reason why there is none"


def test_every_mark_is_of_a_block_there_is() -> None:
    marks = {block.mark for block in all_blocks()}
    assert [mark for mark in NOT_RUN if mark not in marks] == []
    assert all(len(reason.split()) > 3 for reason in NOT_RUN.values())


def test_every_test_that_is_named_exists() -> None:
    for _, _, test in RUN_BY:
        file, _, function = test.partition("::")
        found = re.search(rf"^(async )?def {function}\(", (HERE / file).read_text(), re.MULTILINE)
        assert found, test


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_has_a_language(page: Path) -> None:
    """And stands at the margin, where it is seen by all that looks for blocks."""
    fences = re.findall(r"^\s*```.*$", page.read_text(), re.MULTILINE)
    assert len(fences) == 2 * sum(block.page == page for block in all_blocks())


def test_json_of_a_page_can_be_read() -> None:
    for block in blocks_of("test_json_of_a_page_can_be_read"):
        assert json.loads(block.text), block.where


@cache
def help_of_benchmarks() -> str:
    return run([".venv/bin/python", "-m", "benchmarks", "--help"], ROOT)


@pytest.mark.parametrize("block", blocks_of("test_lines_for_the_shell_can_be_run"), ids=where)
def test_lines_for_the_shell_can_be_run(block: Block, tmp_path: Path) -> None:
    """Each names something there is; what takes seconds is run. Requests are made by the test of
    the guide to the server, backups of databases by that of backups."""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        match words:
            case ["make", *targets]:
                assert {word for word in targets if "=" not in word} <= TARGETS, line
            case ["pip", "install", package]:
                extras = package.partition("[")[2].rstrip("]")
                assert set(filter(None, extras.split(","))) <= set(EXTRAS), line
            case ["penstock", *rest]:
                named = list(takewhile(lambda word: word.isalpha(), rest))[:2]
                told = run(["penstock", *named, "--help"], tmp_path)
                assert all(one in told for one in rest if one.startswith("--")), line
            case [".venv/bin/python", "-m", "benchmarks", *options]:
                told = help_of_benchmarks()
                assert all(one in told for one in options if one.startswith("--")), line
            case ["sqlite3", file, statement]:
                run(["penstock", "enqueue", "mail", "--queue", f"sqlite:///{file}"], tmp_path)
                with_python = f"import sqlite3; sqlite3.connect({file!r}).execute({statement!r})"
                run(["python", "-c", with_python], tmp_path)
            case ["curl", *_]:
                pass
            case ["pg_dump" | "pg_restore" | "redis-cli" | "cp", *_]:
                assert block.page.name == "deployment.md", line  # run by test_backup.py
            case _:
                pytest.fail(f"nothing here knows how to try: {line}")


def test_a_line_for_the_shell_that_names_nothing_is_found(tmp_path: Path) -> None:
    for line in ("make coffee", "pip install 'penstock[wings]'", "sudo rm", "penstock jobs --fly"):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            test_lines_for_the_shell_can_be_run(Block(HERE, "sh", line, 1), tmp_path)


def test_unit_of_systemd_starts_a_worker() -> None:
    for block in blocks_of("test_unit_of_systemd_starts_a_worker"):
        unit = configparser.ConfigParser()
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(block.text)
        service = unit["Service"]
        assert service["ExecStart"].split()[0].endswith("/penstock")
        assert service["ExecStart"].split()[1] == "worker"
        assert service["Environment"].startswith("PENSTOCK_QUEUE=")
        assert float(service["TimeoutStopSec"]) > EngineConfig().grace_seconds


def test_lanes_are_shown_as_the_guide_shows(tmp_path: Path) -> None:
    """What lanes do is another test's business: here it is the form."""
    [block] = blocks_of("test_lanes_are_shown_as_the_guide_shows")
    run(["penstock", "enqueue", "mail"], tmp_path)
    steps = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    (show, shown), (pause, paused) = (step.split("\n", 1) for step in steps)
    assert run(shlex.split(pause), tmp_path).split() == paused.split()
    told = run(shlex.split(show), tmp_path)
    told_columns, columns = (re.split(r"  +", text.splitlines()[0]) for text in (told, shown))
    # A column that would be empty is left out.
    assert told_columns == [column for column in columns if column != "PARENT"]


async def test_grants_let_a_worker_work() -> None:
    [block] = blocks_of("test_grants_let_a_worker_work")
    server = PostgresServer().start()
    try:
        async with Penstock(server.url) as owner:
            job = await owner.enqueue("mail")
            connection = await asyncpg.connect(server.url)
            await connection.execute("CREATE ROLE worker LOGIN")
            await connection.execute(block.text)
            await connection.close()
            worker = Penstock(server.url.replace("penstock@", "worker@"))

            @worker.job("mail")
            async def mail(ctx: object) -> str:
                return "sent"

            async with worker.running():
                assert (await owner.wait(job.id, timeout=60)).result == "sent"
    finally:
        server.remove()


INLINE = re.compile(r"`(penstock [^`]+)`")
CONNECTIONS = {f"penstock {one} shop" for one in ["work", "listen", "renew", "app", "store"]}
"""Names of connections to a server, which are not commands."""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_a_sentence_exist(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for text in INLINE.findall(prose):
        if text not in CONNECTIONS:
            known(text.replace("\n", " "))


@cache
def whole() -> Any:
    return typer.main.get_command(cli)


def known(text: str) -> None:
    """Fails unless the command line has this command, and the command these options."""
    command: Any = whole()
    options = {"--help"}
    for word in text.split()[1:]:
        options |= {one for parameter in command.params for one in parameter.opts}
        commands = getattr(command, "commands", {})
        if word.startswith("--"):
            assert word.partition("=")[0].rstrip(",.") in options, text
        elif commands:
            assert word in commands, text
            command = commands[word]
            options |= {one for parameter in command.params for one in parameter.opts}


@pytest.mark.parametrize("text", ["penstock fly", "penstock jobs --wings", "penstock jobs lost"])
def test_a_command_in_a_sentence_that_does_not_exist_is_found(text: str) -> None:
    with pytest.raises(AssertionError):
        known(text)
