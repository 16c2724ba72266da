"""What one tenant takes leaves room for the others."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.app_api import Site, site_in
from tests.support.raw_http import Wire, request
from tests.support.waiting import until


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def test_a_tenant_that_fills_its_share_of_the_queue_leaves_room_for_others(
    site: Site,
) -> None:
    later = {"kind": "nobody.handles", "delay": 366 * 86400}
    bob, alice = await site.secret("bob"), await site.secret("alice")
    async with site.listening(max_queued=100, max_queued_per_tenant=5) as address:
        wire = await Wire.open(address)

        async def post(key: str) -> tuple[int, str]:
            bearer = {"Authorization": f"Bearer {key}"}
            answer = await wire.ask("POST", "/v1/jobs", later, bearer)
            return answer.status, answer.json.get("code", "")

        assert [await post(bob) for _ in range(6)] == [(202, "")] * 5 + [(503, "queue-full")]
        assert await post(alice) == (202, "")
        wire.close()


async def test_a_tenant_that_opens_its_share_of_streams_leaves_room_for_others(site: Site) -> None:
    bob, alice = await site.secret("bob"), await site.secret("alice")
    async with site.listening(max_streams=10, max_streams_per_tenant=2) as address:
        wires = [await Wire.open(address) for _ in range(4)]

        async def status(wire: Wire, key: str) -> int:
            bearer = {"Authorization": f"Bearer {key}"}
            wire.writer.write(request("GET", "/v1/events", headers=bearer))
            return (await wire.head())[0]

        assert [await status(wire, bob) for wire in wires[:3]] == [200, 200, 503]
        assert await status(wires[3], alice) == 200
        wires[0].close()

        async def room() -> bool:
            wire = await Wire.open(address)
            try:
                return await status(wire, bob) == 200
            finally:
                wire.close()

        await until(room, "a stream that was closed to count no more")
        for wire in wires:
            wire.close()
