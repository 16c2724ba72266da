"""Answers over HTTP: asked, waited for, listed, given up; with a model and without."""

import asyncio
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.answers import QUESTION, content
from tests.support.answers_config import SSE, asking, check_cited, fill, over, settings
from tests.support.model_server import ANSWER, PLAN, SEARCH, ModelServer, Reply
from tests.support.serve_process import Host
from tests.support.waiting import until

NOBODY = "0" * 32


@pytest.fixture
def bare(host: Host) -> Host:
    host.others |= settings()
    return host


@pytest.fixture
def modelled(host: Host, model: ModelServer) -> Host:
    content(model)
    host.others |= settings(model)
    return host


def same(one: httpx.Response, other: httpx.Response) -> bool:
    """But for the version: the end is told a moment after an answer is over."""
    return {**one.json(), "version": 0} == {**other.json(), "version": 0}


async def test_without_a_model_a_question_is_answered_with_sentences_and_where_they_are(
    bare: Host,
) -> None:
    served = bare.serve()
    async with served.client() as client:
        await fill(client)
        answer = await client.post("/v1/answers", json={"question": QUESTION})
        assert answer.status_code == 201
        told = answer.json()
        assert answer.headers["location"] == f"/v1/answers/{told['answer_id']}"
        assert (told["state"], told["mode"], told["next_poll"]) == ("completed", "extractive", None)
        assert told["text"].startswith("An overshot wheel is turned by the weight of water")
        check_cited(told)
        cited = told["evidence"][told["citations"][0]["number"] - 1]
        assert (cited["document"], cited["title"]) == ("wheel", "About the wheel")
        assert told["notes"] == ["no model is configured for answers"]
        assert same(await client.get(answer.headers["location"]), answer)
        nothing = await client.post(
            "/v1/answers", json={"question": QUESTION, "collections": ["other"]}
        )
        assert (nothing.json()["state"], nothing.json()["citations"]) == ("completed", [])
        assert nothing.json()["missing"]


async def test_a_model_plans_judges_and_writes_and_each_step_is_told(
    modelled: Host, model: ModelServer
) -> None:
    served = modelled.serve()
    async with served.client() as client:
        await fill(client)
        async with asking(client) as (path, coming):
            told = [one async for one in coming]
        names = [one.name for one in told]
        order = ["asked", "plan", "searching", "evidence", "writing", "token", "answer", "done"]
        assert list(dict.fromkeys(names)) == order
        assert path == f"/v1/answers/{told[0].data['answer_id']}"
        assert [names.count(one) for one in ("asked", "answer", "done")] == [1, 1, 1]
        assert told[1].data["queries"] == ["overshot wheel", "weight of water"]
        ids = [int((one.id or "").removesuffix("-end")) for one in told]
        assert ids == sorted(set(ids)), "in order, and each has its own"
        answer = (await client.get(path)).json()
        assert answer["mode"] == "model"
        assert told[-2].data["text"] == answer["text"]
        assert told[-1].data["state"] == "completed"
        check_cited(answer)
        assert answer["models"] == {"plan": PLAN, "search": SEARCH, "answer": ANSWER}


async def test_who_does_not_wait_is_given_the_id_and_the_answer_later(
    modelled: Host, model: ModelServer
) -> None:
    served = modelled.serve()
    async with served.client() as client:
        await fill(client)
        assert (await client.post("/v1/lanes/llm.plan/pause")).status_code == 200
        paths = []
        for wait in (0, 0.2):
            asked = await client.post(f"/v1/answers?wait={wait}", json={"question": QUESTION})
            assert (asked.status_code, asked.json()["state"]) == (201, "running")
            assert asked.json()["next_poll"] > 0
            paths.append(asked.headers["location"])
        assert (await client.post("/v1/lanes/llm.plan/resume")).status_code == 200
        path = paths[-1]
        assert (await over(client, path))["mode"] == "model"
        listed = (await client.get("/v1/answers?limit=1")).json()
        assert [one["answer_id"] for one in listed["answers"]] == [path.rpartition("/")[2]]
        older = (await client.get(f"/v1/answers?before={listed['next']}")).json()
        assert [one["question"] for one in older["answers"]] == [QUESTION]
        assert older["next"] is None


async def test_the_same_key_asks_once_whichever_way_the_answer_is_read(
    modelled: Host, model: ModelServer
) -> None:
    served = modelled.serve()
    body, key = {"question": QUESTION}, {"Idempotency-Key": "mine"}
    async with served.client() as client:
        await fill(client)
        first = await client.post("/v1/answers", json=body, headers=key)
        again = await client.post("/v1/answers", json=body, headers=key)
        assert (first.status_code, again.status_code) == (201, 201)
        assert same(first, again)
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        async with client.stream("POST", "/v1/answers", json=body, headers=key | SSE) as response:
            assert response.headers["location"] == first.headers["location"]
            assert response.headers["idempotency-replayed"] == "true"
        other = await client.post("/v1/answers", json={"question": "Else?"}, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "key-reused")
        assert len((await client.get("/v1/answers")).json()["answers"]) == 1
    assert len(model.asked(ANSWER)) == 1


async def test_a_question_that_is_given_up_ends_with_an_error_and_stays_so(
    modelled: Host, model: ModelServer
) -> None:
    model.script[ANSWER] = Reply(hang=True)
    served = modelled.serve()
    async with served.client() as client:
        await fill(client)
        async with asking(client) as (path, coming):
            await until(lambda: bool(model.asked(ANSWER)), "the model to be asked")
            cancelled = (await client.post(f"{path}/cancel")).json()
            assert (cancelled["state"], cancelled["next_poll"]) == ("cancelled", None)
            told = [one async for one in coming]
        assert told[-1].name == "error"
        assert told[-1].data["state"] == "cancelled"
        assert "answer" not in [one.name for one in told]
        assert (await client.post(f"{path}/cancel")).json()["state"] == "cancelled"
        assert (await client.get(path)).json()["state"] == "cancelled"
        logged = (await client.get("/v1/actions")).json()["actions"]
        kept = [(one["action"], one["subject"], one["outcome"]) for one in logged]
        assert kept == [("answer.cancel", path.rpartition("/")[2], "done")] * 2


@pytest.mark.parametrize("headers", [{}, SSE], ids=["json", "stream"])
async def test_what_is_wrong_is_a_problem_before_anything_is_made(
    headers: dict[str, str], bare: Host
) -> None:
    reader = bare.key("reader", scopes="read")
    writer = bare.key("writer", scopes="read write")
    served = bare.serve("--no-workers", require_key=True, max_streams=1)
    wrong: list[dict[str, Any]] = [
        {},
        {"question": ""},
        {"question": "  "},
        {"question": "a" * 10_001},
        {"question": "a", "sources": "moon"},
        {"question": "a", "collections": []},
        {"question": "a", "seconds": 0.5},
        {"question": "a", "seconds": 10**6},
        {"question": "a", "mode": "fast"},
    ]
    async with served.client(writer) as client, served.client(reader) as other:
        for body in wrong:
            answer = await client.post("/v1/answers", json=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), body
        refused = await other.post("/v1/answers", json={"question": "a"}, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        for method, path in (
            ("GET", f"/v1/answers/{NOBODY}?wait=20"),
            ("GET", f"/v1/answers/{NOBODY}/events"),
            ("POST", f"/v1/answers/{NOBODY}/cancel"),
        ):
            answer = await client.request(method, path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (404, "answer-not-found"), path
        if headers:
            async with client.stream("GET", "/v1/events"):
                full = await client.post("/v1/answers", json={"question": "a"}, headers=headers)
                assert (full.status_code, full.json()["code"]) == (503, "too-many-streams")
        assert (await other.get("/v1/answers")).json() == {"answers": [], "next": None}


async def test_with_a_full_queue_nothing_is_asked(bare: Host) -> None:
    served = bare.serve("--no-workers", max_queued=1)
    async with served.client() as client:
        for _ in range(2):
            await client.post("/v1/jobs", json={"kind": "add"})

        async def full() -> bool:
            answer = await client.post("/v1/answers?wait=0", json={"question": "a"})
            return answer.status_code == 503 and answer.json()["code"] == "queue-full"

        await until(full, "the queue to be seen as full")
        before = len((await client.get("/v1/answers")).json()["answers"])
        streamed = await client.post("/v1/answers", json={"question": "a"}, headers=SSE)
        assert streamed.status_code == 503
        assert len((await client.get("/v1/answers")).json()["answers"]) == before


async def test_waits_end_with_the_answer_as_it_is_when_the_server_stops(bare: Host) -> None:
    served = bare.serve("--no-workers")
    async with served.client() as client:
        asked = (await client.post("/v1/answers?wait=0", json={"question": "a"})).json()
        path = f"/v1/answers/{asked['answer_id']}"
        waits = [
            asyncio.create_task(client.get(f"{path}?wait=60&since={asked['version']}")),
            asyncio.create_task(client.post("/v1/answers?wait=60", json={"question": "b"})),
        ]

        async def waiting() -> bool:
            return "penstock_http_long_polls 2.0" in (await client.get("/metrics")).text

        await until(waiting, "both to wait")
        done = await asyncio.to_thread(served.stop)
        assert [(await one).json()["state"] for one in waits] == ["running", "running"]
    assert done.code == 0
    assert "Traceback" not in done.err
