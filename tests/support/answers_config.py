"""Questions by way of the server and the command line: their config file, with a model on loopback
or none, and what is asked of the API again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import yaml

from tests.support.answers import DOCUMENTS, PATIENT, QUESTION, QUICK, ROOMY
from tests.support.document_app import LANE
from tests.support.model_server import ModelServer
from tests.support.serve_process import Event, Served, events

SSE = {"Accept": "text/event-stream"}
NAMES = ("wheel", "stones", "eel")
MANY_WORDS = " ".join(f"Word {number} is of the wheel [1]." for number in range(12))
"""What a model may write slowly: each sentence is told as it comes."""


def settings(model: ModelServer | None = None) -> dict[str, Any]:
    """What a config file says of answers."""
    free = {**QUICK, "max_parallel": 40}
    del free["parent"]
    lanes = {"embedder": LANE | PATIENT, "llm": free}
    lanes |= dict.fromkeys(("llm.plan", "llm.search", "llm.answer"), QUICK | PATIENT)
    known: dict[str, Any] = {**ROOMY, "lanes": lanes, "max_retries": 2}
    return known if model is None else known | yaml.safe_load(model.config())


async def fill(client: httpx.AsyncClient, *names: str) -> None:
    """Documents that answers can be made of."""
    for name in names or NAMES:
        body = {"text": DOCUMENTS[name], "title": f"About the {name}"}
        answer = await client.put(f"/v1/index/{name}", json=body)
        assert answer.status_code == 200, answer.text


@asynccontextmanager
async def asking(
    client: httpx.AsyncClient, question: str = QUESTION, **more: Any
) -> AsyncIterator[tuple[str, AsyncIterator[Event]]]:
    """A question whose answer is streamed: its path, and the events as they come."""
    body = {"question": question, **more}
    async with client.stream("POST", "/v1/answers", json=body, headers=SSE) as response:
        assert response.status_code == 200, await response.aread()
        yield response.headers["location"], events(response)


async def over(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    """The answer once it is over, by long polls."""
    since = 0
    while True:
        answer = await client.get(f"{path}?wait=20&since={since}")
        assert answer.status_code == 200, answer.text
        known: dict[str, Any] = answer.json()
        if known["next_poll"] is None:
            return known
        since = known["version"]


async def rest(served: Served, path: str, last: str | None) -> list[Event]:
    """What a reader is told that comes again, to the end."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with (
        served.client() as client,
        client.stream("GET", f"{path}/events", headers=headers) as response,
    ):
        assert response.status_code == 200
        return [one async for one in events(response)]


def written(told: list[Event]) -> str:
    """The text that a reader has put together, who forgets what was written before a new start."""
    text = ""
    for one in told:
        if one.name == "writing":
            text = ""
        elif one.name == "token":
            text += one.data["text"]
    return text


def check_cited(answer: dict[str, Any]) -> None:
    """Each citation resolves, and stands where it says."""
    numbers = {one["number"] for one in answer["evidence"]}
    assert answer["citations"]
    for one in answer["citations"]:
        assert one["number"] in numbers
        assert answer["text"][one["start"] : one["end"]] == f"[{one['number']}]"
