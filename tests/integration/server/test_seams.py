"""Jobs on one server, documents on another: what the API has handed on it does not take back."""

import asyncio

from penstock.model.ids import new_id
from penstock.server.callers import REMEMBER_SECONDS
from tests.integration.server.test_documents import finished, originals
from tests.support.database_servers import redis_url
from tests.support.postgres import new_url
from tests.support.serve_process import Host, events, upload
from tests.support.tcp_proxy import Proxy
from tests.support.waiting import PATIENCE, until

TRIES = 10


async def test_an_upload_whose_job_cannot_be_queued_keeps_its_original(host: Host) -> None:
    with Proxy(f"{redis_url('redis')}?namespace={new_id()}") as proxy:
        host.cli.environment["PENSTOCK_QUEUE"] = proxy.url
        host.cli.environment["PENSTOCK_STORE"] = f"sqlite:///{host.cli.folder}/documents.db"
        served = host.serve()
        async with served.client() as client:

            async def ready() -> bool:
                return (await client.get("/readyz")).status_code == 200

            async def accepted() -> bool:
                """By the store; the queue has just been seen not to be full."""
                await until(ready, "the server to be ready")
                assert (await client.post("/v1/jobs", json={"kind": "add"})).status_code == 202
                proxy.leave()
                answer = await client.post("/v1/documents", files=upload(a_txt=b"A weir."))
                assert answer.status_code == 503
                there = await client.get("/v1/documents/a.txt")
                proxy.come_back()
                return there.status_code == 200

            for _ in range(TRIES):
                if await accepted():
                    break
            await until(ready, "the server to be ready")
            again = await client.post("/v1/documents", files=upload(a_txt=b"A weir."))
            assert again.status_code in (202, 503)
            document = await finished(client, "/v1/documents/a.txt")
            assert document["state"] == "completed", document["message"]

            async def none_left() -> bool:
                return originals(host) == []

            await until(none_left, "the originals to be gone")


async def test_a_file_that_is_refused_leaves_no_original(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        files = [("file", ("a.txt", b"A weir.")), ("file", (f"{'x' * 300}.txt", b"A sluice."))]
        answer = await client.post("/v1/documents", files=files)
        assert answer.status_code == 422
        # The first was accepted before the second was looked at.
        assert len((await client.get("/v1/documents")).json()["documents"]) == 1
    assert len(originals(host)) == 1


async def test_a_stream_outlives_an_outage_in_which_its_key_cannot_be_looked_up(host: Host) -> None:
    with Proxy(new_url()) as proxy:
        host.cli.environment["PENSTOCK_QUEUE"] = proxy.url
        host.cli.environment["PENSTOCK_BLOBS"] = str(host.cli.folder / "blobs")
        key = host.key()
        served = host.serve("--no-workers", heartbeat_seconds=0.2)
        async with (
            served.client(key) as client,
            client.stream("GET", "/v1/events") as response,
        ):
            coming = events(response)
            proxy.leave()
            # The key is remembered for as long; after that every sign of life asks for it.
            await asyncio.sleep(REMEMBER_SECONDS + 1)
            proxy.come_back()

            async def stored() -> bool:
                body = {"kind": "add", "log": "t"}
                return (await client.post("/v1/jobs", json=body)).status_code == 202

            await until(stored, "the server to work again")
            assert (await asyncio.wait_for(anext(coming), PATIENCE)).name == "change"
