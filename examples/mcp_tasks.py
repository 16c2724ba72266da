"""A client that takes MCP tasks asks a question, and follows the answer by an id that would outlive
the server. Here both are in one process; over HTTP or standard streams it is the same."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from mcp.client import Client, ClientExtension
from mcp.client.extension import ClaimContext, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result

from penstock import Penstock
from penstock.mcp.server import PenstockMCP
from penstock.mcp.tool_view import McpServices
from penstock.mcp.waiting import Stopping
from penstock.model.access import EVERYTHING, Caller


class Task(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int


class Seen(Result):
    status: str
    result: dict[str, Any] | None = None


class Named(RequestParams):
    task_id: str


class GetTask(Request[Named, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class Tasks(ClientExtension):
    """Asks until the task is over, and then has what the tool would have answered."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=self.follow)]

    async def follow(self, task: Task, context: ClaimContext) -> CallToolResult:
        print(f"{task.task_id.partition('.')[0]} is {task.status}")
        while True:
            asked = GetTask(params=Named(task_id=task.task_id))
            seen = await context.session.send_request(asked, Seen)
            if seen.result is not None:
                return CallToolResult.model_validate(seen.result)
            assert seen.status == "working", "nobody cancels it here"
            await asyncio.sleep(task.poll_interval_ms / 1000)


async def main() -> None:
    with TemporaryDirectory() as folder:
        app = Penstock(f"sqlite:///{Path(folder)}/mill.db")
        app.use("answers")
        caller = Caller("default", EVERYTHING)
        async with app.running():
            server = PenstockMCP(McpServices(app, lambda request: caller, Stopping()))
            async with Client(server, extensions=[Tasks()]) as client:
                text = "An overshot wheel is turned by the weight of water in its buckets."
                await client.call_tool("ingest", {"text": text, "wait": 50})
                question = {"question": "What turns an overshot wheel?"}
                answer = (await client.call_tool("ask", question)).structured_content
                assert isinstance(answer, dict)
                print(answer["text"])
                assert "the weight of water in its buckets. [1]" in answer["text"]


asyncio.run(main())
