"""The API of documents, asked over HTTP."""

import asyncio
import json
from pathlib import Path

import httpx2 as httpx

from tests.support.serve_process import Host, upload
from tests.support.waiting import PATIENCE, until

TEXT = "The penstock carries water to the turbine. Ask kim@example.org for more."


async def finished(client: httpx.AsyncClient, where: str) -> dict[str, object]:
    async def look() -> dict[str, object] | None:
        document = (await client.get(where)).json()
        return None if document["state"] == "processing" else document

    return await until(look, f"{where} to be finished")


def originals(host: Host) -> list[Path]:
    return [path for path in host.cli.folder.glob("*-blobs/**/*") if path.is_file()]


async def test_files_of_a_form_become_searchable(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        answer = await client.post(
            "/v1/documents",
            data={"collection": "plants", "metadata": json.dumps({"year": 2026})},
            files=upload(penstock_txt=TEXT.encode(), weir_md=b"# Weir\n\nA weir holds water back."),
        )
        assert answer.status_code == 202, answer.text
        accepted = answer.json()["documents"]
        assert [one["id"] for one in accepted] == ["penstock.txt", "weir.md"]
        assert answer.headers["location"] == "/v1/documents/penstock.txt?collection=plants"
        done = await finished(client, answer.headers["location"])
        assert (done["state"], done["masked"], done["metadata"]) == (
            "completed",
            {"email": 1},
            {"year": 2026},
        )
        await finished(client, "/v1/documents/weir.md?collection=plants")
        found = (await client.post("/v1/search", json={"question": "weir water"})).json()
        assert found["mode"] == "hybrid"
        assert "why" not in found["passages"][0]
        assert {one["document"] for one in found["passages"]} == {"penstock.txt", "weir.md"}
        explained = await client.post(
            "/v1/search", json={"question": "turbine", "explain": True, "metadata": {"year": 2026}}
        )
        assert explained.json()["passages"][0]["why"]["text_rank"] == 1
        chunks = (await client.get("/v1/documents/weir.md/chunks?collection=plants")).json()
        assert [one["section"] for one in chunks["chunks"]] == [["Weir"]]
    assert originals(host) == []


async def test_text_is_accepted_listed_and_deleted(host: Host) -> None:
    served = host.serve("--no-workers")
    async with served.client() as client:
        for n in range(3):
            await client.post("/v1/documents", json={"text": f"Number {n}.", "id": f"n/{n}"})
        first = (await client.get("/v1/documents?limit=2")).json()
        rest = (await client.get("/v1/documents", params={"before": first["next"]})).json()
        listed = [one["id"] for one in first["documents"] + rest["documents"]]
        assert listed == ["n/2", "n/1", "n/0"]
        assert rest["next"] is None
        assert (await client.delete("/v1/documents/n%2F1")).status_code == 204
        assert (await client.delete("/v1/documents/n%2F1")).status_code == 404
        mail = "/v1/documents/for%20someone@example.org"
        assert (await client.delete(mail)).status_code == 404
        assert (await client.get("/v1/documents/n%2F1")).status_code == 404
        assert (await client.get("/v1/documents/n/2")).status_code == 404
        assert len((await client.get("/v1/documents?state=processing")).json()["documents"]) == 2
    told = host.cli("actions", "--json").json
    assert [(one["action"], one["subject"], one["outcome"]) for one in told] == [
        ("document.delete", "?", "failed"),
        ("document.delete", "?", "failed"),
        ("document.delete", "n/1", "done"),
    ]
    shown = host.cli("actions").out
    assert "document.delete" in shown
    assert "someone" not in shown
    assert host.cli("actions", "--tenant", "other").err == "nothing was done that matches\n"


async def test_an_upsert_answers_when_it_can_be_searched(host: Host) -> None:
    served = host.serve()
    async with served.client() as client:
        for text, content_type in (("One.", "application/json"), ("Two.", "text/plain")):
            body = json.dumps({"text": text}) if content_type.endswith("json") else text
            answer = await client.put(
                "/v1/index/a%2Fb", content=body, headers={"Content-Type": content_type}
            )
            assert answer.status_code == 200, answer.text
            chunks = (await client.get("/v1/documents/a%2Fb/chunks")).json()["chunks"]
            assert [one["text"] for one in chunks] == [text]


async def test_an_upsert_past_the_deadline_goes_on_as_a_job(host: Host) -> None:
    served = host.serve(deadline_seconds=0.3)
    host.embedder.delay = 1.0
    async with served.client() as client:
        answer = await client.put("/v1/index/slow", json={"text": TEXT})
        assert answer.status_code == 202
        job = answer.json()["job"]
        assert answer.headers["location"] == f"/v1/jobs/{job}"
        assert (await client.get(f"/v1/jobs/{job}?wait=60")).json()["state"] == "completed"
        assert (await finished(client, "/v1/documents/slow"))["state"] == "completed"


async def test_a_document_that_fails_says_why_and_is_tried_again(host: Host) -> None:
    served = host.serve()
    host.embedder.fault = "dimension"
    async with served.client() as client:
        answer = await client.put("/v1/index/bad", json={"text": TEXT})
        assert (answer.status_code, answer.json()["code"]) == (422, "document-failed")
        assert answer.json()["document"]["error"]["type"] == "EmbedderError"
        listed = (await client.get("/v1/documents?state=failed")).json()["documents"]
        assert [one["id"] for one in listed] == ["bad"]
        host.embedder.fault = None
        known = answer.json()["document"]["generation"]
        answer = await client.put("/v1/index/bad", json={"text": TEXT})
        assert (answer.status_code, answer.json()["document"]["generation"]) == (422, known)
        assert "give `retry` to try again" in answer.json()["detail"]
        again = await client.post("/v1/documents/bad/retry")
        assert again.status_code == 202
        assert again.json()["error"]["type"] == "EmbedderError", "kept until it is mended"
        assert (await finished(client, "/v1/documents/bad"))["error"] is None
        assert (await client.post("/v1/documents/bad/retry")).status_code == 422


async def test_a_form_asks_for_another_try_of_what_has_failed(host: Host) -> None:
    served = host.serve()
    files = {"file": ("noise.bin", bytes(range(256)) * 40)}
    async with served.client() as client:

        async def send(**fields: str) -> tuple[str, bool]:
            answer = await client.post("/v1/documents", files=files, data=fields)
            (document,) = answer.json()["documents"]
            return document["state"], "give `retry`" in document["message"]

        assert await send() == ("processing", False)
        assert (await finished(client, "/v1/documents/noise.bin"))["state"] == "failed"
        assert await send() == ("failed", True)
        assert await send(retry="true") == ("processing", False)
        assert (await client.put("/v1/index/noise.bin?retry=true", content=b"x")).is_success


async def test_what_is_wrong_with_an_upload_is_said_and_nothing_is_kept(host: Host) -> None:
    served = host.serve("--no-workers", upload_files=2)
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc'
    async with served.client() as client:
        tries = [
            (await client.post("/v1/documents", content=b"x"), 415),
            (await client.post("/v1/documents", content=b"", headers=form), 422),
            (await client.post("/v1/documents", content=b"--x--\r\n", headers=form), 422),
            (await client.post("/v1/documents", content=part, headers=form), 422),
            (await client.post("/v1/documents", content=part + b"\r\n--x", headers=form), 422),
            (await client.post("/v1/documents", files=upload(a=b"1", b=b"2", c=b"3")), 413),
            (await client.post("/v1/documents", files=upload(a=b"1"), data={"colour": "x"}), 422),
            (
                await client.post("/v1/documents", files=upload(a=b"1"), data={"metadata": "{"}),
                422,
            ),
            (
                await client.post(
                    "/v1/documents", files=upload(a=b"1", b=b"2"), data={"id": "both"}
                ),
                422,
            ),
            (await client.post("/v1/documents", json={"id": "nothing"}), 422),
            (await client.post("/v1/documents", json={"text": "a", "url": "http://x"}), 422),
            (await client.post("/v1/documents", json={"text": "a", "id": "a\nb"}), 422),
            (await client.put("/v1/index/x", json={"txt": "a"}), 422),
        ]
        assert [(one.status_code, wanted) for one, wanted in tries] == [
            (wanted, wanted) for _, wanted in tries
        ]
        assert all(one.headers["content-type"] == "application/problem+json" for one, _ in tries)
        assert (await client.get("/v1/documents")).json()["documents"] == []
    assert originals(host) == []


async def test_uploads_over_the_limit_are_refused_and_leave_nothing(host: Host) -> None:
    host.others["document_bytes"] = 100_000
    served = host.serve("--no-workers", upload_bytes=300_000)
    async with served.client() as client:
        one = await client.post("/v1/documents", files=upload(big=b"x" * 150_000))
        assert one.status_code == 413
        many = {f"f{n}": b"x" * 90_000 for n in range(4)}
        assert (await client.post("/v1/documents", files=upload(**many))).status_code == 413
        assert (await client.put("/v1/index/big", content=b"x" * 150_000)).status_code == 413

        async def endless() -> object:
            while True:
                yield b"x" * 10_000

        try:
            answer = await client.put("/v1/index/endless", content=endless())  # type: ignore[arg-type]
            assert answer.status_code == 413
        except httpx.TransportError:  # cut off in the middle
            pass
        assert (await client.get("/v1/documents")).json()["documents"] == []
    assert originals(host) == []


async def test_a_caller_that_lies_about_the_length_leaves_nothing(host: Host) -> None:
    served = host.serve("--no-workers", body_seconds=0.5)
    address = served.url.removeprefix("http://").split(":")
    head = "PUT /v1/index/{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n"
    for length, body, said in ((10**12, b"", b" 413 "), (1000, b"too little", b" 408 ")):
        reader, writer = await asyncio.open_connection(address[0], int(address[1]))
        writer.write(head.format(f"l{length}", length).encode() + body)
        line = await asyncio.wait_for(reader.readline(), PATIENCE)
        assert said in line
        writer.transport.abort()
    async with served.client() as client:
        assert (await client.get("/v1/documents")).json()["documents"] == []
    assert originals(host) == []


async def test_a_request_with_a_key_is_carried_out_once(host: Host) -> None:
    served = host.serve("--no-workers")
    key = {"Idempotency-Key": "order 66"}
    async with served.client() as client:
        first = await client.post("/v1/jobs", json={"kind": "add"}, headers=key)
        again = await client.post("/v1/jobs", json={"kind": "add"}, headers=key)
        assert (first.status_code, again.status_code) == (202, 202)
        assert first.content == again.content
        assert again.headers["location"] == first.headers["location"]
        assert again.headers["idempotency-replayed"] == "true"
        other = await client.post("/v1/jobs", json={"kind": "mail.send"}, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "key-reused")
        elsewhere = await client.post("/v1/documents", json={"text": "a"}, headers=key)
        assert elsewhere.status_code == 202, "a key is of its route"
        form = {"files": upload(a=b"1", b=b"2"), "headers": {"Idempotency-Key": "form"}}
        both = [await client.post("/v1/documents", **form) for _ in range(2)]  # type: ignore[arg-type]
        assert both[0].content == both[1].content
        wrong = await client.post("/v1/jobs", json={"kind": 1}, headers={"Idempotency-Key": "w"})
        right = await client.post(
            "/v1/jobs", json={"kind": "add"}, headers={"Idempotency-Key": "w"}
        )
        assert (wrong.status_code, right.status_code) == (422, 202), "nothing was made: it is free"
        assert len((await client.get("/v1/jobs?kind=add")).json()["jobs"]) == 2


async def test_many_requests_with_one_key_at_once_make_one_job(host: Host) -> None:
    served, second = host.serve("--no-workers"), host.serve("--no-workers")
    async with served.client() as client, second.client() as other:
        answers = await asyncio.gather(
            *(
                (client if n % 2 else other).post(
                    "/v1/jobs", json={"kind": "add"}, headers={"Idempotency-Key": "same"}
                )
                for n in range(40)
            )
        )
        made = {one.json()["id"] for one in answers}
        assert len(made) == 1, "also those that are told to wait learn the id"
        assert {one.status_code for one in answers} <= {202, 409}
        assert len((await client.get("/v1/jobs")).json()["jobs"]) == 1
