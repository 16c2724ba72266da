"""Callers that hang up, and a queue that goes away: nothing is lost, and nothing is made twice."""

import asyncio
import json
import socket

import httpx2 as httpx

from tests.integration.server.test_documents import finished, originals
from tests.support.postgres import new_url
from tests.support.serve_process import Host, Served
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import until

BOUNDARY = "cut"
PARTS = 12
"""At how many places each request is cut."""


def form(**files: bytes) -> bytes:
    """A form as a browser sends it."""
    body = b""
    for name, content in files.items():
        head = f'Content-Disposition: form-data; name="file"; filename="{name}.txt"'
        body += f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + content + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


def request(method: str, path: str, content_type: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def send(served: Served, data: bytes) -> None:
    """Send it, and hang up at once."""
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(data)


async def test_an_upload_that_is_cut_off_leaves_nothing(host: Host) -> None:
    served = host.serve("--no-workers")
    body = form(one=b"One. " * 40, two=b"Two. " * 40)
    whole = request("POST", "/v1/documents", f"multipart/form-data; boundary={BOUNDARY}", body)
    async with served.client() as client:
        for cut in range(1, len(whole), len(whole) // PARTS):
            await asyncio.to_thread(send, served, whole[:cut])
        assert (await client.get("/v1/documents")).json()["documents"] == []

        async def no_blobs() -> bool:
            return originals(host) == []

        await until(no_blobs, "what was received to be dropped")
        # All of it was sent, the answer is not waited for: it is accepted or not, but never twice.
        for _ in range(3):
            await asyncio.to_thread(send, served, whole)
        again = await client.post(
            "/v1/documents",
            content=body,
            headers={"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"},
        )
        assert again.status_code == 202
        assert len((await client.get("/v1/documents")).json()["documents"]) == 2
        assert len((await client.get("/v1/jobs")).json()["jobs"]) == 2


async def test_an_upsert_whose_caller_hangs_up_is_done_all_the_same(host: Host) -> None:
    served = host.serve()
    host.embedder.delay = 0.3
    body = json.dumps({"text": "The penstock carries water."}).encode()
    whole = request("PUT", "/v1/index/a", "application/json", body)
    async with served.client() as client:
        for cut in range(1, len(whole), len(whole) // PARTS):
            await asyncio.to_thread(send, served, whole[:cut])
        assert (await client.get("/v1/documents")).json()["documents"] == []
        host_name, port = served.url.removeprefix("http://").split(":")
        for _ in range(5):  # it gives up when the work has begun, and tries again, as callers do
            _, writer = await asyncio.open_connection(host_name, int(port))
            writer.write(whole)

            async def there() -> bool:
                return (await client.get("/v1/documents/a")).status_code == 200

            await until(there, "the document to be accepted")
            writer.transport.abort()
        document = await finished(client, "/v1/documents/a")
        assert (document["state"], document["chunks"]) == ("completed", 1)
        jobs = (await client.get("/v1/jobs")).json()["jobs"]
        assert sorted(job["kind"] for job in jobs) == ["ingest.embed", "ingest.parse"]
        assert len(host.embedder.requests) == 1


async def test_while_the_queue_is_away_nothing_is_promised(host: Host) -> None:
    with Proxy(new_url()) as proxy:
        host.cli.environment["PENSTOCK_QUEUE"] = proxy.url
        host.cli.environment["PENSTOCK_BLOBS"] = str(host.cli.folder / "blobs")
        served = host.serve("--no-workers")
        async with served.client() as client:
            assert (await client.post("/v1/jobs", json={"kind": "add"})).status_code == 202
            async with client.stream("GET", "/v1/events") as response:
                assert response.status_code == 200
                proxy.leave()
            for method, path, body in (
                ("POST", "/v1/jobs", {"kind": "add"}),
                ("POST", "/v1/documents", {"text": "Lost?"}),
                ("PUT", "/v1/index/a", {"text": "Lost?"}),
                ("GET", "/v1/jobs", None),
                ("GET", "/v1/documents", None),
                ("GET", "/v1/events", None),
            ):
                answer = await client.request(method, path, json=body)
                assert answer.status_code == 503, (method, path, answer.text)
                assert int(answer.headers["retry-after"]) > 0
            ready = await client.get("/readyz")
            assert ready.status_code == 503
            assert ready.json()["checks"]["queue"].startswith("no")
            assert (await client.get("/healthz")).status_code == 200
            proxy.come_back()

            async def back() -> bool:
                return (await client.get("/readyz")).status_code == 200

            await until(back, "the server to be ready again")
            assert (await client.post("/v1/jobs", json={"kind": "add"})).status_code == 202
            jobs = (await client.get("/v1/jobs")).json()["jobs"]
            assert len(jobs) == 2, "what was answered with 503 was not stored"
            assert (await client.get("/v1/documents")).json()["documents"] == []


async def test_a_killed_server_loses_nothing_and_repeats_nothing(host: Host) -> None:
    served = host.serve("--no-workers")
    key = {"Idempotency-Key": "survives"}
    async with served.client() as client:
        first = await client.post("/v1/jobs", json={"kind": "add"}, headers=key)
        await client.post("/v1/documents", json={"text": "One.", "id": "a"}, headers=key)
    served.kill()
    second = host.serve()
    async with second.client() as client:
        again = await client.post("/v1/jobs", json={"kind": "add"}, headers=key)
        assert again.content == first.content
        assert (await finished(client, "/v1/documents/a"))["state"] == "completed"
        job = (await client.get(first.headers["location"], params={"wait": 60})).json()
        assert job["state"] == "completed"


async def test_an_unknown_path_and_a_wrong_method_are_problems_too(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        answers: list[httpx.Response] = [
            await client.get("/nowhere"),
            await client.get("/v1/jobs/a/b/c"),
            await client.delete("/v1/jobs"),
        ]
        assert [one.status_code for one in answers] == [404, 404, 405]
        assert answers[2].headers["allow"] == "GET, POST"
        assert "/openapi.json" in answers[0].json()["detail"]
        for one in answers:
            assert one.headers["content-type"] == "application/problem+json"
