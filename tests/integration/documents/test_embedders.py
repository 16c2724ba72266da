"""Embedders keep their promise, or say why not."""

from __future__ import annotations

import array
import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest

from penstock import JobContext
from penstock.adapters.models.offline_embedder import OfflineEmbedder
from penstock.adapters.models.openai_embedder import OpenAIEmbedder
from penstock.errors import (
    AuthenticationError,
    ConfigError,
    EmbedderError,
    HttpError,
    RateLimited,
    Unavailable,
)
from penstock.model.lane import LaneConfig
from tests.support.counting_server import Answer, CountingServer, as_json
from tests.support.waiting import PATIENCE
from tests.support.worker_processes import Farm

TEXTS = ["one", "two"]


def floats(vector: bytes) -> array.array[float]:
    return array.array("f", vector)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(floats(one), floats(other), strict=True))


def reply(*vectors: Any, order: list[int] | None = None) -> Answer:
    places = order or list(range(len(vectors)))
    return as_json({"data": [{"index": at, "embedding": vectors[at]} for at in places]})


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        yield client


def embedder_of(
    server: CountingServer, client: httpx2.AsyncClient, key_variable: str | None = None
) -> OpenAIEmbedder:
    return OpenAIEmbedder(server.url("/v1"), "small", 3, client.post, key_variable)


async def test_served_vectors_come_in_the_order_of_the_texts_and_of_unit_length(
    server: CountingServer, client: httpx2.AsyncClient
) -> None:
    server.answers["/v1/embeddings"] = reply([3, 0, 4], [0, -2.0, 0], order=[1, 0])
    embedder = embedder_of(server, client)
    first, second = await embedder.embed(TEXTS)
    assert list(floats(first)) == pytest.approx([0.6, 0, 0.8])
    assert list(floats(second)) == pytest.approx([0, -1, 0])
    [hit] = server.at("/v1/embeddings")
    assert json.loads(hit.body) == {"model": "small", "input": TEXTS}


async def test_no_texts_make_no_request(server: CountingServer, client: httpx2.AsyncClient) -> None:
    assert await embedder_of(server, client).embed([]) == []
    assert server.hits == []


@pytest.mark.parametrize(
    "answer",
    [
        reply([1, 0, 0]),
        reply([1, 0, 0], [0, 1, 0], [0, 0, 1]),
        reply([1, 0, 0], [0, 1]),
        reply([1, 0, 0], []),
        reply([1, 0, 0], None),
        reply([1, 0, 0], [0, 1, "x"]),
        reply([1, 0, 0], [0, 1, None]),
        reply([1, 0, 0], [0, 1, 10**400]),
        reply([1, 0, 0], [0, 0, 0]),
        reply([1, 0, 0], [0, 1, math.nan]),
        reply([1, 0, 0], [0, 1, math.inf]),
        reply([1, 0, 0], [0, 1, 0], order=[0, 0]),
        reply([1, 0, 0], [0, 1, 0], [0, 0, 1], order=[1, 2]),
        as_json({"data": [{"embedding": [1, 0, 0]}, {"embedding": [1, 0, 0]}]}),
        as_json({"error": "overloaded"}),
        as_json([]),
        as_json({"data": None}),
        Answer(body=b""),
        Answer(body=b"<html>welcome</html>"),
        Answer(body=b"[" * 100_000),
        Answer(204),
    ],
)
async def test_wrong_answer_is_an_error_and_never_a_vector(
    answer: Answer, server: CountingServer, client: httpx2.AsyncClient
) -> None:
    server.answers["/v1/embeddings"] = answer
    with pytest.raises(EmbedderError, match="small gave"):
        await embedder_of(server, client).embed(TEXTS)


async def test_429_is_rate_limited_for_as_long_as_it_says(
    server: CountingServer, client: httpx2.AsyncClient
) -> None:
    server.answers["/v1/embeddings"] = Answer(429, headers={"retry-after": "7"})
    with pytest.raises(RateLimited) as raised:
        await embedder_of(server, client).embed(TEXTS)
    assert raised.value.retry_after == 7


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_5xx_is_unavailable(
    status: int, server: CountingServer, client: httpx2.AsyncClient
) -> None:
    server.answers["/v1/embeddings"] = Answer(status)
    with pytest.raises(Unavailable) as raised:
        await embedder_of(server, client).embed(TEXTS)
    assert raised.value.status == status


async def test_no_answer_and_no_server_are_unavailable(server: CountingServer) -> None:
    async with httpx2.AsyncClient(timeout=0.2) as client:
        embedder = embedder_of(server, client)
        for answer in (Answer(hang=True), Answer(reset=True)):
            server.answers["/v1/embeddings"] = answer
            with pytest.raises(Unavailable):
                await embedder.embed(TEXTS)
        server.down()
        with pytest.raises(Unavailable):
            await embedder.embed(TEXTS)


async def test_refused_key_and_refused_request_are_told_apart(
    server: CountingServer, client: httpx2.AsyncClient
) -> None:
    server.answers["/v1/embeddings"] = Answer(401)
    with pytest.raises(AuthenticationError):
        await embedder_of(server, client).embed(TEXTS)
    server.answers["/v1/embeddings"] = Answer(400, body=b"input too long: one")
    with pytest.raises(HttpError) as raised:
        await embedder_of(server, client).embed(TEXTS)
    assert "one" not in str(raised.value)


async def test_key_comes_from_the_environment_and_is_in_no_message(
    server: CountingServer, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = embedder_of(server, client, "EMBEDDER_KEY")
    monkeypatch.delenv("EMBEDDER_KEY", raising=False)
    with pytest.raises(ConfigError, match="EMBEDDER_KEY"):
        await embedder.embed(TEXTS)
    monkeypatch.setenv("EMBEDDER_KEY", "hunter2")
    for status in (400, 401, 429, 500):
        server.answers["/v1/embeddings"] = Answer(status)
        with pytest.raises(Exception, match=str(status)) as raised:
            await embedder.embed(TEXTS)
        assert "hunter2" not in repr(raised.value)
    assert {hit.headers["authorization"] for hit in server.hits} == {"Bearer hunter2"}
    assert "hunter2" not in repr(vars(embedder))


async def test_inside_a_job_requests_go_through_its_lane(
    server: CountingServer, farm: Farm
) -> None:
    """`ctx.http.post` brings permits, errors and the deadline."""
    server.answers["/v1/embeddings"] = reply([3, 0, 4])
    server.answers["/bad/embeddings"] = reply([3, 0])
    app = farm.bare(lanes={"embedder": LaneConfig(min_interval_seconds=0.0)}, max_retries=3)

    @app.job("embed", lane="embedder")
    async def embed(ctx: JobContext, path: str) -> list[float]:
        embedder = OpenAIEmbedder(server.url(path), "small", 3, ctx.http.post)
        [vector] = await embedder.embed(["one"])
        return list(floats(vector))

    async with app, app.running():
        sound, wrong = [await app.enqueue("embed", {"path": path}) for path in ("/v1", "/bad")]
        done = await app.wait(sound.id, timeout=60)
        failed = await app.wait(wrong.id, timeout=60)
    assert done.result == pytest.approx([0.6, 0, 0.8])
    assert failed.error is not None
    assert (failed.error.type, failed.attempts) == ("EmbedderError", 1)


@pytest.fixture(scope="module")
def offline() -> Iterator[OfflineEmbedder]:
    embedder = OfflineEmbedder()
    yield embedder
    embedder.close()


async def test_offline_vectors_keep_the_promise(offline: OfflineEmbedder) -> None:
    texts = ["", "x", "\ud800 lone", "nul \x00", "word " * 3000, *(f"text {n}" for n in range(20))]
    vectors = await offline.embed(texts)
    assert len(vectors) == len(texts)
    for vector in vectors:
        assert len(vector) == 4 * offline.dimensions
        assert math.hypot(*floats(vector)) == pytest.approx(1, abs=1e-5)


async def test_offline_vectors_are_near_where_texts_mean_the_same(offline: OfflineEmbedder) -> None:
    cat, kitten, tax, neko = await offline.embed(
        ["The cat sleeps.", "A kitten is asleep.", "Taxes are due in May.", "猫が眠っている。"]
    )
    assert cosine(cat, kitten) > cosine(cat, tax) + 0.2
    assert cosine(cat, neko) > cosine(cat, tax) + 0.2


async def test_vector_does_not_depend_on_what_else_is_in_the_batch(
    offline: OfflineEmbedder,
) -> None:
    [alone] = await offline.embed(["A kitten is asleep."])
    among = await offline.embed([*map(str, range(11)), "A kitten is asleep."])
    assert list(floats(among[-1])) == pytest.approx(list(floats(alone)), abs=1e-5)


async def test_many_callers_at_once_get_their_own_vectors(offline: OfflineEmbedder) -> None:
    texts = [f"question number {number}" for number in range(12)]
    together = await asyncio.gather(*(offline.embed([text]) for text in texts))
    for [vector], expected in zip(together, await offline.embed(texts), strict=True):
        assert list(floats(vector)) == pytest.approx(list(floats(expected)), abs=1e-5)


async def test_loop_stays_free_while_texts_are_embedded(offline: OfflineEmbedder) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async with asyncio.TaskGroup() as group:
        ticker = group.create_task(tick())
        await offline.embed(["a text of some words that is long enough to take time " * 10] * 64)
        ticker.cancel()
    assert ticks > 3
