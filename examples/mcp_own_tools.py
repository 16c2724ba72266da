"""A tool of your own: the server is killed in the middle of a call, and the next one answers it."""

import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from penstock import JobContext, Penstock

FOLDER = Path(os.environ.get("FOLDER", "."))
app = Penstock(f"sqlite:///{FOLDER}/jobs.db")


@app.tool(key="number", max_retries=3)
async def press(ctx: JobContext, number: str, kilos: int) -> dict[str, int]:
    """Press an order of apples.

    Args:
        number: The number of the order.
    """
    washed = await ctx.step("wash", wash, kilos)
    if ctx.attempt == 1:
        os._exit(1)  # as if it was killed: server, worker and all
    return {"litres": washed * 2 // 3}


def wash(kilos: int) -> int:
    with (FOLDER / "washed.txt").open("a") as file:
        file.write(f"{kilos}\n")
    return kilos


def server() -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "penstock.cli", "mcp", "mcp_own_tools:app", "--tools", "own"],
        env={**os.environ, "FOLDER": str(FOLDER)},
        cwd=Path(__file__).parent,
    )


async def main() -> None:
    order = {"number": "7", "kilos": 30}
    with (FOLDER / "servers.log").open("w") as log:
        try:
            async with Client(stdio_client(server(), errlog=log)) as client:
                await client.call_tool("press", order)
            raise AssertionError("the server was not killed")
        except* Exception as errors:
            print(f"the first server is gone: {len(errors.exceptions)} error")
        async with Client(stdio_client(server(), errlog=log)) as client:  # a model calls again
            told = (await client.call_tool("press", order)).structured_content
    print(f"the second has the result of the same job: {told}")
    assert told == {"litres": 20}
    assert (FOLDER / "washed.txt").read_text() == "30\n"  # the recorded step was not done again
    async with app:
        (job,) = await app.jobs(kind="press")
        assert job.attempts == 2


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        FOLDER = Path(name)
        app = app.on_queue(Penstock(f"sqlite:///{name}/jobs.db").queue)
        asyncio.run(main())
