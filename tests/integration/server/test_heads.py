"""Heads of requests, what follows a body, and callers whose key is revoked while they wait."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.model.access import hash_of
from penstock.server import callers
from penstock.server.history import History
from tests.support.app_api import Site, site_in
from tests.support.raw_http import Wire, request
from tests.support.waiting import until


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def test_what_follows_a_body_is_no_header(site: Site) -> None:
    key = await site.secret()
    head = (
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\nTrailer: Authorization, Via\r\n"
    )
    body = b'{"kind": "add"}'
    chunked = b"\r\n%x\r\n%s\r\n0\r\n" % (len(body), body)
    async with site.listening() as address:
        wire = await Wire.open(address)
        trailer = b"Authorization: Bearer wrong\r\nVia: 1.1 somewhere\r\n\r\n"
        wire.writer.write(head + chunked + trailer)
        assert (await wire.answer()).status == 202, "as if it was not there"
        wire.writer.write(head + chunked + b"\r\n")
        assert (await wire.answer()).status == 202, "the connection is in step"
        wire.close()
    async with site.listening(require_key=True) as address:
        wire = await Wire.open(address)
        trailer = f"Authorization: Bearer {key}\r\n\r\n".encode()
        # The body in parts, so that the trailer is there before anybody looks for a key.
        wire.writer.write(head + chunked + trailer)
        assert (await wire.answer()).status == 401
        wire.close()


@pytest.mark.parametrize(
    ("count", "header", "status"),
    [
        (190, "a: b", 200),
        (201, "a: b", 431),
        (150, f"a: {'b' * 430}", 200),
        (152, f"a: {'b' * 430}", 431),
    ],
)
async def test_all_bytes_of_a_head_count_and_so_do_its_headers(
    site: Site, count: int, header: str, status: int
) -> None:
    async with site.listening() as address:
        wire = await Wire.open(address)
        lines = "\r\n".join([header] * count)
        wire.writer.write(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n".encode())
        assert (await wire.answer()).status == status
        wire.close()


async def test_a_long_poll_ends_soon_after_its_key_is_revoked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "REMEMBER_SECONDS", 0.1)
    secret = await site.secret()
    key = await site.app.keys.store.key_by_hash(hash_of(secret))
    assert key is not None
    job = await site.app.enqueue("nobody.handles")
    async with site.listening(heartbeat_seconds=0.1) as address:
        wire = await Wire.open(address)
        bearer = {"Authorization": f"Bearer {secret}"}
        wire.writer.write(request("GET", f"/v1/jobs/{job.id}?wait=300", headers=bearer))
        answer = asyncio.create_task(wire.answer())
        watching = await Wire.open(address)

        async def waits() -> bool:
            return b"penstock_http_long_polls 1.0" in (await watching.ask("GET", "/metrics")).body

        await until(waits, "the long poll to be open")
        assert not answer.done()
        await site.app.keys.store.revoke(key.id)
        async with asyncio.timeout(60):
            assert (await answer).status == 401
        wire.close()
        watching.close()


async def test_the_history_is_kept_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = 0

    async def keep(self: History) -> None:
        nonlocal keeping
        keeping += 1

    monkeypatch.setattr(History, "keep", keep)
    async with site.listening() as address:
        wire = await Wire.open(address)
        assert (await wire.ask("GET", "/healthz")).status == 200
        wire.close()
    assert keeping == 1
