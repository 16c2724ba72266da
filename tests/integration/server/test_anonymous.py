"""Who may call without a key: the user who runs the server, as the kernel knows them."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.model.server import ServerConfig
from penstock.server import connections
from tests.support.app_api import Site, site_in
from tests.support.raw_http import Wire

NOBODY = 65534


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def status(address: str, path: str = "/v1/jobs", **headers: str) -> int:
    """Of a connection of its own."""
    return await told(await Wire.open(address), path, **headers)


async def told(wire: Wire, path: str = "/v1/jobs", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        return (await wire.ask("GET", path, headers=named)).status
    finally:
        wire.close()


async def by_nobody(address: str) -> Wire:
    """A connection that another user of this machine has made, as a proxy of the system does."""
    host, _, port = address.removeprefix("http://").partition(":")
    os.seteuid(NOBODY)
    try:
        made = socket.socket()
    finally:
        os.seteuid(0)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, (host, int(port)))
    return Wire(*await asyncio.open_connection(sock=made))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
async def test_another_user_of_this_machine_needs_a_key(site: Site) -> None:
    key = await site.secret()
    async with site.listening() as address:
        assert await status(address) == 200, "the user who runs it needs none"
        wire = await by_nobody(address)
        answer = await wire.ask("GET", "/v1/jobs")
        assert answer.status == 401
        assert "penstock keys create" in answer.json["detail"]
        assert await told(wire, Authorization=f"Bearer {key}") == 200
    async with site.listening(allow_anonymous=True) as address:
        assert await told(await by_nobody(address)) == 200


async def test_whoever_cannot_be_told_needs_a_key(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "is_own_user", lambda _: False)
    async with site.listening() as address:
        assert await status(address) == 401
        assert await status(address, "/metrics") == 401
        assert await status(address, "/healthz") == 200
        assert await status(address, "/", Accept="text/html") == 303, "to the page to sign in"
    async with site.listening(allow_anonymous=True) as address:
        assert await status(address) == 200


@pytest.mark.parametrize(
    "header",
    ["Forwarded", "Via", "X_Forwarded_For", "X_Forwarded_Proto", "X_Real_IP", "CF_Connecting_IP"],
)
@pytest.mark.parametrize("anonymous", [False, True])
async def test_what_a_proxy_has_passed_on_needs_a_key(
    site: Site, header: str, anonymous: bool
) -> None:
    async with site.listening(allow_anonymous=anonymous) as address:
        assert await status(address, **{header: "1.1 somewhere"}) == 401


async def test_metrics_are_not_for_pages_of_other_sites(site: Site) -> None:
    key = await site.secret()
    async with site.listening() as address:
        assert await status(address, "/metrics") == 200
        assert await status(address, "/metrics", Host="evil.example") == 421
        assert await status(address, "/metrics", Origin="https://evil.example") == 403
        assert await status(address, "/healthz", Host="10.0.0.7:8321") == 200
        by_address = {"Host": "10.0.0.7:8321", "Authorization": f"Bearer {key}"}
        assert await status(address, "/metrics", **by_address) == 200
        by_address["Authorization"] = "Bearer wrong"
        assert await status(address, "/metrics", **by_address) == 401


@pytest.mark.parametrize("others", [{"require_key": True}, {"host": "0.0.0.0"}])  # noqa: S104
def test_all_are_let_in_on_loopback_only(others: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="allow_anonymous is for a server on loopback"):
        ServerConfig(allow_anonymous=True, **others)  # type: ignore[arg-type]
