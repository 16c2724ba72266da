"""Streams of answers, and who reads them: readers that leave, come back, stop reading or share one,
and servers that stop or are killed. The answer is made all the same, and its end is seen once."""

import asyncio
import json
import signal
import socket
import threading
from collections.abc import AsyncIterator

import pytest

from tests.support.answers import QUESTION, content
from tests.support.answers_config import (
    MANY_WORDS,
    SSE,
    asking,
    fill,
    over,
    rest,
    settings,
    written,
)
from tests.support.model_server import ANSWER, ModelServer, Reply
from tests.support.raw_http import Wire, request
from tests.support.serve_process import Event, Host, Served, events
from tests.support.waiting import until

ENDS = ("done", "error")
BODY = json.dumps({"question": QUESTION}).encode()


@pytest.fixture
def host(host: Host, model: ModelServer) -> Host:
    """With a model that writes slowly: some four seconds."""
    content(model)
    model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05)
    host.others |= settings(model)
    return host


def names(told: list[Event]) -> list[str]:
    return [one.name for one in told]


async def test_tokens_come_while_the_model_still_writes(host: Host, model: ModelServer) -> None:
    seen = threading.Event()
    model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05, until=seen.is_set)
    served = host.serve()
    async with served.client() as client:
        await fill(client)
        told: list[Event] = []
        async with asking(client) as (path, coming):
            async for one in coming:
                told.append(one)
                if one.name == "token":
                    seen.set()  # its end was not sent before
        assert names(told).count("token") >= 3
        answer = (await client.get(path)).json()
        assert written(told).strip() == answer["text"]
        assert answer["mode"] == "model"


async def test_who_hangs_up_in_the_middle_finds_the_answer_afterwards(
    host: Host, model: ModelServer
) -> None:
    served = host.serve()
    async with served.client() as client:
        await fill(client)
        async with asking(client) as (path, coming):
            seen = [one async for one in _until_token(coming)]
        answer = await over(client, path)
        assert (answer["state"], answer["mode"], answer["notes"]) == ("completed", "model", [])
        assert len(model.asked(ANSWER)) == 1, "and the model was asked once"
        told = await rest(served, path, seen[-1].id)
        assert not set(names(told)) & {"asked", "plan", "searching", "writing"}
        assert written(seen + told).strip() == answer["text"]
        assert [one for one in names(told) if one in ENDS] == ["done"]
        headers = {"Last-Event-ID": told[-1].id or ""}
        assert (await client.get(f"{path}/events", headers=headers)).status_code == 204


async def _until_token(coming: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for one in coming:
        yield one
        if one.name == "token":
            return


async def test_who_hangs_up_while_waiting_finds_the_answer_afterwards(
    host: Host, model: ModelServer
) -> None:
    served = host.serve()
    async with served.client() as client:
        await fill(client)
        wire = await Wire.open(served.url)
        wire.writer.write(request("POST", "/v1/answers", BODY))
        await until(lambda: bool(model.asked(ANSWER)), "the model to be asked")
        wire.close()
        [listed] = (await client.get("/v1/answers")).json()["answers"]
        answer = await over(client, f"/v1/answers/{listed['answer_id']}")
        assert (answer["state"], answer["mode"]) == ("completed", "model")
        assert len(model.asked(ANSWER)) == 1


async def test_who_disconnects_after_every_event_sees_each_once_and_the_end(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        await fill(client)
        async with asking(client) as (path, coming):
            seen = [await anext(coming)]
        while True:
            headers = {"Last-Event-ID": seen[-1].id or ""}
            async with client.stream("GET", f"{path}/events", headers=headers) as response:
                if response.status_code == 204:
                    break
                seen.append(await anext(events(response)))
        versions = [int((one.id or "").removesuffix("-end")) for one in seen]
        assert versions == sorted(set(versions))
        assert [one for one in names(seen) if one in ENDS] == ["done"]
        answer = (await client.get(path)).json()
        assert written(seen).strip() == answer["text"]


async def test_two_readers_and_a_late_one_are_told_the_same(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        await fill(client)
        async with asking(client) as (path, coming):
            reading = [asyncio.create_task(rest(served, path, None)) for _ in range(2)]
            first = [one async for one in coming]
        told = [await one for one in reading]
        late = await rest(served, path, None)
        assert first[1:] == told[0][1:] == told[1][1:] == late[1:]
        assert names(first)[0] == "asked"
        for last in ("99999", "nonsense"):
            again = await rest(served, path, last)
            assert again[0].name == "reset"
            assert again[0].data["answer_id"] == first[0].data["answer_id"]
            assert again[1:] == first[1:]


async def test_a_server_killed_in_the_middle_costs_a_reader_nothing(
    host: Host, model: ModelServer
) -> None:
    stalls = Reply(MANY_WORDS, pause=0.1, stall_after=60)
    model.script[ANSWER] = [stalls, Reply(MANY_WORDS, pause=0.01)]
    served = host.serve()
    seen: list[Event] = []
    async with served.client() as client:
        await fill(client)
        async with asking(client) as (path, coming):
            seen += [one async for one in _until_token(coming)]
            served.kill()
    second = host.serve()
    told = await rest(second, path, seen[-1].id)
    async with second.client() as client:
        answer = await over(client, path)
    assert (answer["state"], answer["mode"]) == ("completed", "model")
    assert "writing" in names(told), "who takes over begins the text anew"
    assert written(seen + told).strip() == answer["text"]
    assert [one for one in names(seen + told) if one in ENDS] == ["done"]
    assert len(model.asked(ANSWER)) == 2, "once by each"


async def test_a_server_that_stops_says_bye_and_the_next_one_goes_on(
    host: Host, model: ModelServer
) -> None:
    left = threading.Event()
    model.script[ANSWER] = Reply(MANY_WORDS, pause=0.05, until=left.is_set)
    served = host.serve()
    seen: list[Event] = []
    async with served.client() as client:
        await fill(client)
        async with asking(client) as (path, coming):
            seen += [one async for one in _until_token(coming)]
            served.send(signal.SIGTERM)
            seen += [one async for one in coming]
        left.set()
        done = await asyncio.to_thread(served.running.end)
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    bye = seen.pop()
    assert (bye.name, bye.id) == ("bye", None)
    second = host.serve()
    told = await rest(second, path, seen[-1].id)
    assert [one for one in names(seen + told) if one in ENDS] == ["done"]
    async with second.client() as client:
        assert written(seen + told).strip() == (await client.get(path)).json()["text"]


async def test_readers_that_read_nothing_hold_nothing_up(host: Host, model: ModelServer) -> None:
    """Neither the answer, nor who reads it, nor the server: their streams end."""
    model.script[ANSWER] = "水車は川の流れで回る[1]。" * 3000  # three bytes for each character
    served = host.serve(stall_seconds=5, heartbeat_seconds=0.2)
    async with served.client() as client:
        await fill(client)
        slow = [await unread(served, request("POST", "/v1/answers", BODY, SSE)) for _ in range(5)]

        async def asked() -> bool:
            return len((await client.get("/v1/answers")).json()["answers"]) == 5

        await until(asked, "all to be asked")
        [first, *_] = (await client.get("/v1/answers")).json()["answers"]
        path = f"/v1/answers/{first['answer_id']}"
        slow += [await unread(served, request("GET", f"{path}/events")) for _ in range(5)]
        told = await asyncio.wait_for(rest(served, path, None), 60)
        assert told[-1].name == "done"
        answer = await over(client, path)
        assert written(told) == answer["text"]
        assert len(answer["citations"]) == 3000

        async def none_open() -> bool:
            return "penstock_http_streams 0.0" in (await client.get("/metrics")).text

        await until(none_open, "no stream to be left")
        for one in slow:
            one.close()


async def unread(served: Served, asked: bytes) -> socket.socket:
    """A request by somebody who reads nothing, and has little room for what comes."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.setblocking(False)
    host, _, port = served.url.removeprefix("http://").partition(":")
    loop = asyncio.get_running_loop()
    await loop.sock_connect(reader, (host, int(port)))
    await loop.sock_sendall(reader, asked)
    return reader


async def test_a_stream_without_news_shows_that_it_lives(host: Host, model: ModelServer) -> None:
    seen = threading.Event()
    model.script[ANSWER] = Reply("It turns [1].", until=seen.is_set)
    served = host.serve(heartbeat_seconds=0.2)
    lines: list[str] = []
    async with served.client() as client:
        await fill(client)
        body = {"question": QUESTION}
        async with client.stream("POST", "/v1/answers", json=body, headers=SSE) as response:
            async for line in response.aiter_lines():
                lines.append(line)
                if "event: writing" in lines and lines.count(": still here") >= 2:
                    seen.set()
    assert lines.count("event: done") == 1
