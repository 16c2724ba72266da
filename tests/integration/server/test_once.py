"""Idempotency-Key over the time of its record, and what of a request is stored."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from penstock.errors import QueueUnavailable
from penstock.intake.idempotency import once
from penstock.model.ids import new_id
from tests.support.app_api import Site, site_in
from tests.support.postgres import new_url

KEY = {"Idempotency-Key": "daily-report"}


@pytest.fixture(params=["sqlite", "postgres"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """In each store in turn."""
    url = new_url() if request.param == "postgres" else ""
    async with site_in(tmp_path, url=url, documents=True) as site:
        yield site


async def a_day_passes(site: Site) -> None:
    """Answers are forgotten as if the time of their records was over."""
    await site.app.keys.store.purge(time.time() + 600)


def body(path: str, what: str) -> dict[str, Any]:
    return {"kind": "add", "log": what} if path == "/v1/jobs" else {"question": f"{what}?"}


def bytes_of(folder: Path) -> bytes:
    """All files but originals, which are deleted once they are masked."""
    files = [one for one in folder.rglob("*") if one.is_file() and "blobs" not in one.parts]
    return b"".join(one.read_bytes() for one in files)


def id_of(answer: httpx.Response) -> str:
    assert answer.status_code in (201, 202), answer.text
    return answer.headers["location"].rpartition("/")[2]


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/tasks", "/v1/answers?wait=0"])
async def test_a_key_used_again_after_its_day_makes_something_new(site: Site, path: str) -> None:
    async with await site.client() as client:

        async def post(what: str) -> str:
            return id_of(await client.post(path, json=body(path, what), headers=KEY))

        monday = await post("monday")
        assert await post("monday") == monday, "within the day it is the same"
        refused = await client.post(path, json=body(path, "tuesday"), headers=KEY)
        assert (refused.status_code, refused.json()["code"]) == (422, "key-reused")
        await a_day_passes(site)
        tuesday = await post("tuesday")
        await a_day_passes(site)
        again = await post("tuesday")
        assert len({monday, tuesday, again}) == 3
        where = path.partition("?")[0]
        seen = [(await client.get(f"{where}/{one}")).json() for one in (monday, tuesday, again)]
    if where == "/v1/jobs":
        assert [one["log"] for one in seen] == ["monday", "tuesday", "tuesday"]
    else:
        assert [one["question"] for one in seen] == ["monday?", "tuesday?", "tuesday?"]


async def test_a_job_stored_without_an_answer_is_the_same_when_it_is_sent_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is done, and its answer lost."""
    enqueue = type(site.app.queue).enqueue

    async def lost(*arguments: Any, **options: Any) -> Any:
        await enqueue(site.app.queue, *arguments, **options)
        raise QueueUnavailable("the answer is lost")

    async with await site.client() as client:
        with monkeypatch.context() as patch:
            patch.setattr(site.app.queue, "enqueue", lost)
            answer = await client.post("/v1/jobs", json={"kind": "add"}, headers=KEY)
            assert answer.status_code == 503
        found = id_of(await client.post("/v1/jobs", json={"kind": "add"}, headers=KEY))
        jobs = (await client.get("/v1/jobs")).json()["jobs"]
    assert [job["id"] for job in jobs] == [found]


async def test_a_message_read_after_its_record_is_forgotten_makes_something_new(site: Site) -> None:
    made: list[str] = []

    async def make(id: str) -> None:  # noqa: A002
        made.append(id)

    async def read(content: str) -> bool:
        return await once(site.app.keys.store, "default", "id:7", content, new_id(), make)

    assert await read("monday")
    assert not await read("monday")
    await a_day_passes(site)
    assert await read("tuesday")
    assert len(set(made)) == 2


async def test_what_names_a_document_or_a_request_is_stored_nowhere(tmp_path: Path) -> None:
    """In no file of the database, not even in what is not written back yet."""
    secret = {"Idempotency-Key": "key.canary@example.com"}
    async with site_in(tmp_path, documents=True) as site, await site.client() as client:

        async def post(path: str, **options: Any) -> None:
            answer = await client.post(path, headers=secret, **options)
            assert answer.status_code in (201, 202), answer.text

        await post("/v1/documents", json={"text": "a", "id": "id.canary@example.com"})
        secret["Idempotency-Key"] += "2"
        address = "https://example.com/url.canary@example.com?token=SECRETCANARY"
        await post("/v1/documents", json={"url": address})
        secret["Idempotency-Key"] += "3"
        await post("/v1/documents", files={"file": ("file.canary@example.com.txt", b"b")})
        await post("/v1/jobs", json={"kind": "add"})
        await post("/v1/tasks", json={"question": "what of question.canary@example.com?"})
        seen = await asyncio.to_thread(bytes_of, tmp_path)
    assert b"api_requests" in seen
    for canary in (b"key", b"id", b"url", b"file", b"question"):
        assert canary + b".canary" not in seen
    assert b"SECRETCANARY" not in seen
