"""Clients of MCP, of the SDK: over either transport, of either era."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self

import httpx2 as httpx
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.support import forks
from tests.support.cli import Cli, Done
from tests.support.serve_process import NO_TLS, PATIENCE, Host, Served

ERAS = {"old": "2025-11-25", "new": "2026-07-28"}
MODES = {"old": "legacy", "new": "auto"}
OPERATOR_TOOLS = {"mcp_operator_tools": True}
"""The setting with which all tools are offered."""
WAYS = [f"{transport}-{era}" for transport in ("stdio", "http") for era in ERAS]


class Agents:
    """Starts what an agent talks to, and connects it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.errors = host.cli.folder / "mcp.err"
        """What `penstock mcp` has said on stderr."""

    @asynccontextmanager
    async def connect(self, way: str, *arguments: str) -> AsyncIterator[Client]:
        """A client, connected as `way` says to a server of its own."""
        transport, _, era = way.partition("-")
        if transport == "stdio":
            async with self.on_stdio(era, *arguments) as client:
                yield client
        else:
            async with over_http(self.host.serve(*arguments), era) as client:
                yield client

    @asynccontextmanager
    async def on_stdio(self, era: str, *arguments: str) -> AsyncIterator[Client]:
        cli = self.host.cli
        program, *words = forks.command("penstock.cli", *self.command(*arguments))
        server = StdioServerParameters(
            command=program, args=words, env=cli.environment, cwd=cli.folder
        )
        with self.errors.open("a") as errors:
            transport = stdio_client(server, errlog=errors)
            async with Client(transport, mode=MODES[era]) as client:
                yield client

    def command(self, *arguments: str) -> list[str]:
        return ["mcp", "shop:app", "--config", self.host.config(), *arguments]


@asynccontextmanager
async def over_http(
    served: Served | str, era: str = "new", key: str | None = None
) -> AsyncIterator[Any]:
    """Of a server, or of an address."""
    address = served if isinstance(served, str) else served.url
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE, verify=NO_TLS) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        async with Client(transport, mode=MODES[era]) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers; the SDK has checked it against the tool's output schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> tuple[str, str]:
    """Code and message of a call that is not carried out."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    told = result.structured_content
    assert isinstance(told, dict)
    assert text_of(result) == f"{told['code']}: {told['message']}"
    return told["code"], told["message"]


def text_of(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


def envelope(method: str, era: str = "new", number: int = 1, **params: Any) -> dict[str, Any]:
    """A request as it goes over the wire; a new one brings all that it needs."""
    if era == "new":
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": ERAS["new"],
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
            **params.get("_meta", {}),
        }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def headers_for(message: dict[str, Any], era: str = "new") -> dict[str, str]:
    """What HTTP asks for beside it."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": ERAS[era],
    }
    if era == "new":
        headers["Mcp-Method"] = message["method"]
        params = message["params"]
        if name := params.get("name") or params.get("taskId") or params.get("uri"):
            headers["Mcp-Name"] = name
    return headers


TASKS: dict[str, Any] = {
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }
}
"""What a client says with every request that takes tasks."""


class Wire(Protocol):
    """A client of the new era without an SDK: what it sends and what it gets is as it goes over
    the wire."""

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole message that is answered."""


class HttpWire:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        message = envelope(method, _meta=params.pop("_meta", TASKS), **params)
        response = await self._client.post("/mcp", json=message, headers=headers_for(message))
        return answer_of(response)


class StdioWire:
    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._number = 0

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        meta = params.pop("_meta", TASKS)
        await self._talk.write(envelope(method, number=self._number, _meta=meta, **params))
        while (answer := await self._talk.read()).get("id") != self._number:
            assert "method" in answer, "what is told meanwhile"
        return answer


async def begin(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    """The task that a call of a tool becomes."""
    task = (await wire.ask("tools/call", name=tool, arguments=arguments))["result"]
    assert task["resultType"] == "task", task
    return dict(task)


async def ended(wire: Wire, task_id: str) -> dict[str, Any]:
    """A task once it is over, asked for as its client is told to."""
    async with asyncio.timeout(PATIENCE):
        while True:
            task: dict[str, Any] = (await wire.ask("tasks/get", taskId=task_id))["result"]
            assert task["resultType"] == "complete"
            if task["status"] not in ("working", "input_required"):
                return task
            await asyncio.sleep(min(0.2, task["pollIntervalMs"] / 1000))


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """The answer, as JSON or as the last event of a stream."""
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data: ")][-1][6:]
    answer: dict[str, Any] = json.loads(text)
    return answer


class Talk:
    """`penstock mcp` as a process, line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, cli: Cli, *arguments: str) -> Self:
        process = await asyncio.create_subprocess_exec(
            *forks.command("penstock.cli", *arguments),
            cwd=cli.folder,
            env=cli.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=10_000_000,
        )
        return cls(process)

    async def write(self, *lines: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for line in lines:
            text = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(text + b"\n")
        await self.process.stdin.drain()

    async def read(self) -> dict[str, Any]:
        """The next message, which has to be one."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def said(self, text: str) -> None:
        """Wait until it has said `text` on stderr."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            while text not in (line := (await self.process.stderr.readline()).decode()):
                assert line, f"it ended without saying {text!r}"

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def end(self) -> Done:
        """How it ends, and what it has still said."""
        out, err = await asyncio.wait_for(self.process.communicate(), PATIENCE)
        assert self.process.returncode is not None
        return Done(self.process.returncode, out.decode(), err.decode())
