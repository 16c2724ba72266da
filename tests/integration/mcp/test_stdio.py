"""`penstock mcp`: a process that an agent starts, as it goes over its standard streams."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.support.cli import Cli
from tests.support.mcp_clients import ERAS, Talk, call, envelope
from tests.support.research import ResearchSite
from tests.support.research_config import PATIENT, configure
from tests.support.waiting import PATIENCE, until

SOON = 40.0
"""Less than the 50 s after which a wait is answered in any case."""
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": ERAS["old"],
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
Start = Callable[..., Awaitable[Talk]]


def tool(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return envelope("tools/call", number=number, name=name, arguments=arguments)


@pytest.fixture
async def start(cli: Cli) -> AsyncIterator[Start]:
    """Starts `penstock mcp`; what the test has left running is ended."""
    started: list[Talk] = []

    async def begin(*arguments: str) -> Talk:
        started.append(await Talk.start(cli, "mcp", *arguments))
        return started[-1]

    yield begin
    for talk in started:
        if talk.process.returncode is None:
            talk.process.kill()
            await talk.process.communicate()


async def new_task(talk: Talk, *queries: str) -> dict[str, Any]:
    """Its state, once it has these searches."""
    await talk.write(tool(101, "create_task", question="How do wheels turn?"))
    task_id = (await talk.read())["result"]["structuredContent"]["task_id"]
    if queries:
        await talk.write(tool(102, "queue_searches", task_id=task_id, queries=list(queries)))
        await talk.read()
    await talk.write(tool(103, "get_status", task_id=task_id))
    state: dict[str, Any] = (await talk.read())["result"]["structuredContent"]
    return state


async def waiting(talk: Talk, number: int, state: dict[str, Any]) -> None:
    """The process waits for news of a task: it has told so."""
    message = tool(number, "get_status", task_id=state["task_id"], wait=50, since=state["version"])
    message["params"]["_meta"]["progressToken"] = "p"
    await talk.write(message)
    assert (await talk.read())["method"] == "notifications/progress"


async def test_nothing_but_the_protocol_is_on_stdout(cli: Cli, start: Start) -> None:
    with (cli.folder / "shop.py").open("a") as shop:
        shop.write(
            "\nimport os\nprint('imported')\nos.system('echo child')\n"
            "@app.job('loud')\nasync def loud(ctx: JobContext) -> str:\n"
            "    print('said by a job')\n    os.system('cat; echo said by a child')\n"
            "    return 'done'\n"
        )
    job = await asyncio.to_thread(cli.enqueue, "loud")
    talk = await start("shop:app")
    await talk.write(HELLO)
    assert (await talk.read())["id"] == "hello"

    async def done() -> bool:
        return (await asyncio.to_thread(cli.job, job)).state == "completed"

    await until(done, "the job")
    await talk.write({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert (await talk.read())["id"] == 2
    talk.close()
    ended = await talk.end()
    assert (ended.code, ended.out) == (0, "")
    for said in ("imported", "child", "said by a job", "said by a child"):
        assert said in ended.err
    assert "Traceback" not in ended.err


async def test_nonsense_is_answered_and_the_next_line_too(start: Start) -> None:
    talk = await start("--no-workers")
    wrong: list[tuple[bytes, int]] = [
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 5000, -32700),
        (b'{"jsonrpc": "2.0"', -32700),
        (b"[]", -32600),
        (b"5", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'"' + b"x" * 5_000_000 + b'"', -32600),
    ]
    for line, code in wrong:
        await talk.write(b"", line)
        told = await talk.read()
        assert (told["id"], told["error"]["code"]) == (None, code), line[:40]
    await talk.write(tool(7, "search_documents", query="\ud800"), tool(8, "nope"))
    answers = {(await talk.read())["id"]: None for _ in range(2)}
    assert set(answers) <= {7, 8, None}
    await talk.write(tool(9, "list_tasks"))
    assert (await talk.read())["result"]["structuredContent"]["tasks"] == []


@pytest.mark.parametrize("era", ERAS)
async def test_what_was_asked_is_answered_although_the_input_ends(era: str, start: Start) -> None:
    talk = await start("--no-workers")
    if era == "old":
        await talk.write(HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    asked = [
        envelope("tools/call", era, number, name="list_tasks", arguments={}) for number in range(50)
    ]
    await talk.write(*asked)
    talk.close()
    ended = await talk.end()
    answered = [one["id"] for one in ended.lines if one["id"] != "hello"]
    assert sorted(answered) == list(range(50))
    assert all("result" in one for one in ended.lines)
    assert ended.code == 0
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("how", ["input ends", "signal"])
async def test_waits_are_over_when_it_is_to_end(how: str, start: Start) -> None:
    talk = await start("--no-workers")
    state = await new_task(talk, "wheels")
    for number in (1, 2, 3):
        await waiting(talk, number, state)
    begun = time.monotonic()
    if how == "signal":
        talk.process.send_signal(signal.SIGTERM)
    else:
        talk.close()
    ended = await talk.end()
    assert time.monotonic() - begun < SOON
    assert ended.code == 0
    answers = [one for one in ended.lines if "result" in one]
    assert sorted(one["id"] for one in answers) == [1, 2, 3]
    for one in answers:
        assert one["result"]["structuredContent"]["version"] == state["version"]


async def test_a_cancelled_wait_is_not_answered_and_changes_nothing(start: Start) -> None:
    talk = await start("--no-workers")
    state = await new_task(talk, "wheels")
    await waiting(talk, 1, state)
    await talk.write(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        tool(2, "get_status", task_id=state["task_id"]),
    )
    while "method" in (answer := await talk.read()):
        pass  # told before the wait was cancelled
    assert answer["id"] == 2
    assert answer["result"]["structuredContent"]["version"] == state["version"]
    talk.close()
    ended = await talk.end()
    assert (ended.code, ended.out) == (0, "")


async def test_a_job_is_back_in_the_queue_when_the_client_loses_patience(
    cli: Cli, start: Start
) -> None:
    """Clients close the input, wait some seconds, send a signal and then kill."""
    cli.environment["PENSTOCK_GRACE_SECONDS"] = "600"
    job = await asyncio.to_thread(cli.enqueue, "hold")
    talk = await start("shop:app")
    await until((cli.folder / "started").exists, "the job to run")
    talk.close()
    await talk.said("stopping: waiting for 1 running job")
    talk.process.send_signal(signal.SIGTERM)
    assert (await talk.end()).code == 0
    found = await asyncio.to_thread(cli.job, job)
    assert (found.state, found.attempts) == ("queued", 0)


async def test_a_client_that_reads_no_more_ends_it(start: Start) -> None:
    talk = await start("--no-workers")
    await new_task(talk)
    reading = talk.process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
    pipe = reading.get_extra_info("pipe")
    reading.close()
    await until(lambda: pipe.closed, "the pipe to be closed")  # else the answer may still fit in
    await talk.write(tool(1, "list_tasks"))
    assert await asyncio.wait_for(talk.process.wait(), PATIENCE) == 0


async def test_what_is_left_is_done_by_the_next_and_seen_by_all(
    cli: Cli, start: Start, library_site: ResearchSite
) -> None:
    """Killed, not stopped: another process on the same queue goes on."""
    configure(cli, library_site, **PATIENT)
    library_site.page_delay = 0.5
    first = await start()
    state = await new_task(first, "wheels", "mills")
    first.process.kill()
    second, looking = await start(), await start("--no-workers")
    told: dict[str, Any] = {"version": None, "status": "running"}
    async with asyncio.timeout(60):
        while told["status"] == "running":
            arguments = {"task_id": state["task_id"], "wait": 50, "since": told["version"]}
            await looking.write(tool(1, "get_status", **arguments))
            told = (await looking.read())["result"]["structuredContent"]
    assert (told["status"], told["progress"], told["total_results"]) == ("completed", "2/2", 3)
    for talk in (second, looking):
        talk.close()
        assert (await talk.end()).code == 0


async def test_tenants_are_apart(start: Start) -> None:
    ours, theirs = await start("--no-workers"), await start("--no-workers", "--tenant", "b")
    state = await new_task(ours)
    await theirs.write(tool(1, "get_status", task_id=state["task_id"], wait=50))
    told = (await theirs.read())["result"]
    assert (told["isError"], told["structuredContent"]["code"]) == (True, "task-not-found")


async def test_printed_configuration_starts_it_from_anywhere(cli: Cli, tmp_path: Path) -> None:
    (cli.folder / "penstock.yaml").write_text("engine: {max_workers: 2}\n")
    del cli.environment["PENSTOCK_QUEUE"]
    printed = cli("mcp", "shop:app", "--print-config", "--tenant", "kim").json
    server = printed["mcpServers"]["penstock"]
    assert server["args"][:2] == ["mcp", "shop:app"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    parameters = StdioServerParameters(
        command=server["command"],
        args=server["args"],
        env={**cli.environment, **server["env"]},
        cwd=elsewhere,
    )
    async with Client(parameters) as client:
        assert (await call(client, "list_tasks"))["tasks"] == []
    assert (cli.folder / "penstock.db").exists()
    assert not list(elsewhere.iterdir())


def test_printed_configuration_holds_no_secret(cli: Cli) -> None:
    cli.environment["PENSTOCK_QUEUE"] = "redis://:hush@127.0.0.1:1/0"
    cli.environment["PENSTOCK_STORE"] = f"sqlite:///{cli.folder}/store.db"
    done = cli("mcp", "--print-config")
    assert "hush" not in done.out
    assert "PENSTOCK_QUEUE" in done.err


def test_without_its_extra_it_says_what_to_install(cli: Cli) -> None:
    program = (
        "import sys; sys.modules['mcp'] = None; "
        "from penstock.cli import main; sys.exit(main(['mcp']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cli.folder,
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "error: MCP needs: pip install 'penstock[mcp]'\n"


def test_closed_streams_are_told(cli: Cli) -> None:
    ended = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m penstock.cli mcp <&-"],
        cwd=cli.folder,
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "one is closed" in ended.stderr


def test_an_empty_input_ends_it(cli: Cli) -> None:
    done = cli("mcp", "shop:app")
    assert done.out == ""
    assert "stopped" in done.err
