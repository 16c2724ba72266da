"""The guarded client: connects to what was vetted, whatever names and addresses turn into."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from penstock.errors import AddressRefused
from penstock.outbound import guard
from penstock.outbound.certificates import trusted
from penstock.outbound.guard import RESOLVERS, GuardedClient, GuardedNetwork, Resolver
from penstock.outbound.web_address import parse_allow
from tests.support.counting_server import Answer, CountingServer
from tests.support.name_servers import PUBLIC, Names, Wire
from tests.support.waiting import until

SOON = 60.0


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer() as server:
        yield server


async def get(client: GuardedClient, url: str, **headers: str) -> int:
    async with client.stream("GET", url, timeout=SOON, headers=headers) as response:
        await response.aread()
        return response.status_code


@asynccontextmanager
async def client_of(names: Names, wire: Wire) -> AsyncIterator[GuardedClient]:
    client = GuardedClient(GuardedNetwork(parse_allow([]), names, wire))
    yield client
    await client.aclose()


async def test_connection_goes_to_the_address_that_was_vetted(server: CountingServer) -> None:
    """The name has another address when it is asked for once more: nobody asks."""
    names, wire = Names([PUBLIC], ["127.0.0.1"]), Wire(server.port)
    async with client_of(names, wire) as client:
        assert await get(client, "http://rebind.example/") == 200
    assert (names.asked, wire.reached) == (1, [PUBLIC])
    assert server.hits[0].headers["host"] == "rebind.example"


async def test_name_that_turns_private_is_refused_on_the_next_connection(
    server: CountingServer,
) -> None:
    server.answers["/"] = Answer(headers={"connection": "close"})
    names, wire = Names([PUBLIC], ["169.254.169.254"]), Wire(server.port)
    async with client_of(names, wire) as client:
        await get(client, "http://rebind.example/", connection="close")
        with pytest.raises(AddressRefused, match=r"rebind\.example:80 is not fetched"):
            await get(client, "http://rebind.example/")
    assert wire.reached == [PUBLIC]


@pytest.mark.parametrize(
    "bad", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1%eth0", "::ffff:127.0.0.1", "2002:7f00:1::"]
)
async def test_one_private_address_among_public_ones_is_enough_to_refuse(
    server: CountingServer, bad: str
) -> None:
    wire = Wire(server.port)
    async with client_of(Names([PUBLIC, bad]), wire) as client:
        with pytest.raises(AddressRefused):
            await get(client, "http://mixed.example/")
    assert wire.reached == []


async def test_next_address_is_tried_where_the_first_is_dead(server: CountingServer) -> None:
    wire = Wire(server.port, dead=["2606:4700::1111"])
    async with client_of(Names(["2606:4700::1111", PUBLIC]), wire) as client:
        assert await get(client, "http://two.example/") == 200
    assert wire.reached == ["2606:4700::1111", PUBLIC]


async def test_names_of_the_inside_cannot_be_told_from_names_that_do_not_exist(
    server: CountingServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.fetch")
    said = set()
    for answer in (
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["192.0.0.192"],
        [],
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        UnicodeError("label too long"),
    ):
        async with client_of(Names(answer), Wire(server.port)) as client:
            with pytest.raises(AddressRefused) as refused:
                await get(client, "http://guessed.example/")
        said.add(str(refused.value))
    assert said == {
        "guessed.example:80 is not fetched: its name leads to no public address. "
        "If it is meant, name it in the setting fetch_allow"
    }
    logged = [record.getMessage() for record in caplog.records]
    assert "leads to a loopback address" in logged[0]
    assert "is not known" in logged[-1]
    assert "guessed" not in caplog.text


async def test_name_server_in_trouble_is_trouble_of_the_host(server: CountingServer) -> None:
    trouble = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    async with client_of(Names(trouble), Wire(server.port)) as client:
        with pytest.raises(httpx2.TransportError, match="cannot be resolved"):
            await get(client, "http://somewhere.example/")


async def test_allowed_name_that_is_not_known_is_trouble_of_the_host(
    server: CountingServer,
) -> None:
    allow = parse_allow(["intranet.example:80"])
    for answer, why in (
        ([], "no address"),
        (socket.gaierror(socket.EAI_NONAME, "not known"), "cannot be resolved"),
    ):
        client = GuardedClient(GuardedNetwork(allow, Names(answer), Wire(server.port)))
        with pytest.raises(httpx2.TransportError, match=why):
            await get(client, "http://intranet.example/")
        await client.aclose()


async def test_proxies_of_the_environment_are_not_used(
    server: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would resolve the name by itself."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    names = Names([PUBLIC])
    async with client_of(names, Wire(server.port)) as client:
        assert await get(client, "http://open.example/") == 200
    assert names.asked == 1


async def test_slow_name_server_holds_up_nobody_but_fetches() -> None:
    """What else runs in threads has threads of its own."""
    resolver = Resolver()
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    held = [
        loop.run_in_executor(
            resolver._threads, lambda: asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        )
        for _ in range(2 * RESOLVERS)
    ]
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), SOON) == "free"
    gate.set()
    await asyncio.gather(*held)
    resolver.close()


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Of a server called `name`, signed by nobody else; and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(subject, subject, key.public_key(), 7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


async def test_certificate_is_checked_against_the_name_and_not_the_vetted_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path, "safe.example")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    monkeypatch.setattr(guard, "trusted", trusted.__wrapped__)  # as a new process would

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    wire = Wire(server.sockets[0].getsockname()[1])
    try:
        async with client_of(Names([PUBLIC]), wire) as client:
            assert await get(client, "https://safe.example/") == 200
            with pytest.raises(httpx2.TransportError, match=r"(?i)certificate verify failed"):
                await get(client, "https://other.example/")
    finally:
        server.close()
        # A connection that is left to the garbage collector would fail some later test.
        await until(lambda: getattr(server, "_active_count") == 0, "connections to end")  # noqa: B009
    assert wire.reached == [PUBLIC, PUBLIC]
