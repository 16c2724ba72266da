"""The librarian's service: deadlines down to what it asks, permits, health, callers."""

from __future__ import annotations

import asyncio
import datetime
import random
import signal
import socket
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from grpc_health.v1 import health_pb2, health_pb2_grpc

from penstock.errors import ConfigError, Unavailable
from penstock.librarian.client import SEARCH, RemoteLibrarian
from penstock.librarian.messages import MESSAGE_BYTES, errand_message
from penstock.librarian.server import SERVICE, serving
from penstock.librarian.v1 import librarian_pb2 as pb
from penstock.model.librarian import LibrarianConfig
from tests.support.counting_server import Answer, CountingServer
from tests.support.librarian_callers import Counter, counter_at
from tests.support.waiting import look_on, until
from tests.support.worker_processes import Farm

SOON = 60.0
GARBAGE = random.Random(1).randbytes(2000)
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
async def counter(farm: Farm) -> AsyncIterator[Counter]:
    farm.settings["lanes"] = {"model": {"min_interval_seconds": 0.0, "max_parallel": 1}}
    async with counter_at(farm, remote=True) as counter:
        yield counter


@pytest.fixture
async def channel(counter: Counter) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{counter.port}") as channel:
        yield channel


async def test_deadline_travels_as_what_is_left(counter: Counter) -> None:
    await counter.ask("round", seconds=50.0)
    (began,) = counter.diary.notes("began")
    assert 10 < began["left"] < began["remaining"] <= 50, (
        "and the last word is given time to arrive"
    )


async def test_job_that_ends_sooner_than_the_errand_counts(counter: Counter) -> None:
    async with asyncio.timeout(SOON):
        asked = counter.ask("round", "block", seconds=600.0, asking=counter.asking(8.0))
        assert len(await asked) == 1
    assert counter.diary.notes("began")[0]["remaining"] <= 8.0
    await until(lambda: counter.diary.notes("cancelled"), "the search to be ended")


async def test_request_that_a_search_makes_ends_with_the_deadline(
    counter: Counter, server: CountingServer
) -> None:
    server.answers["/"] = Answer(hang=True)
    slow = f"ask:{server.url('/slow')}"
    async with asyncio.timeout(SOON):
        asked = counter.ask(slow, seconds=600.0, asking=counter.asking(4.0))
        (outcome,) = await asyncio.gather(asked, return_exceptions=True)
    # Whichever side looks at its clock first.
    assert outcome == [] or (isinstance(outcome, Unavailable) and outcome.lane == "model")
    await until(lambda: _given_back(counter), "the permit to be given back")
    assert len(server.hits) == 1


async def test_cancelled_search_asks_nothing_more_and_keeps_no_permit(
    counter: Counter, server: CountingServer
) -> None:
    server.answers["/"] = Answer(hang=True)
    steps = [f"ask:{server.url('/slow')}", f"ask:{server.url('/next')}"]
    task = asyncio.create_task(counter.ask(*steps))
    await until(lambda: server.hits, "the search to ask")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: counter.diary.notes("cancelled"), "the search to stop", patience=SOON)
    await until(lambda: _given_back(counter), "the permit to be given back")
    await look_on(0.3)
    assert [hit.path for hit in server.hits] == ["/slow"]


async def _given_back(counter: Counter) -> bool:
    return (await counter.lane("model")).in_flight == 0


async def test_requests_of_searches_keep_to_their_lane_and_wait_for_it(
    counter: Counter, server: CountingServer
) -> None:
    server.answers["/"] = Answer(delay=0.7)
    step = f"ask:{server.url('/model')}"

    async def ask() -> int:
        rounds = counter.librarian.search(counter.asking(), counter.errand(step, "round"))
        return len([turn async for turn in rounds])

    assert await asyncio.gather(*(ask() for _ in range(3))) == [1, 1, 1]
    spans = sorted(server.spans("/model"))
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


async def test_permits_of_a_killed_service_are_free_at_once(
    counter: Counter, server: CountingServer
) -> None:
    server.answers["/"] = Answer(hang=True)
    task = asyncio.create_task(counter.ask(f"ask:{server.url('/slow')}"))
    await until(lambda: server.hits, "the search to ask")
    assert counter.process is not None
    await counter.process.kill()
    await asyncio.gather(task, return_exceptions=True)
    async with counter.asking().lanes.request("model"):
        pass


async def status(channel: grpc.aio.Channel, message: bytes, **options: Any) -> grpc.StatusCode:
    """How a call ends that is made without our client."""
    call = channel.unary_stream(SEARCH)(message, **options)
    async for _ in call:
        pass
    return await call.code()


async def refused(channel: grpc.aio.Channel, message: bytes, **options: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await status(channel, message, **options)
    code: grpc.StatusCode = caught.value.code()
    return code


async def test_call_without_a_deadline_is_refused(
    counter: Counter, channel: grpc.aio.Channel
) -> None:
    message = errand_message(counter.errand("round")).SerializeToString()
    assert await refused(channel, message) is grpc.StatusCode.INVALID_ARGUMENT
    assert counter.diary.notes("began") == []


@pytest.mark.parametrize("message", [b"", b"\xff\xff", b"\x0a\x02\xff\xfe", GARBAGE[:500]])
async def test_message_that_is_no_errand_is_refused(
    message: bytes, counter: Counter, channel: grpc.aio.Channel
) -> None:
    assert await refused(channel, message, timeout=SOON) is grpc.StatusCode.INVALID_ARGUMENT
    assert counter.diary.notes("began") == []


async def test_message_that_is_too_large_is_refused_and_others_are_served(
    counter: Counter, channel: grpc.aio.Channel
) -> None:
    large = pb.Errand(tenant="acme", question="x" * MESSAGE_BYTES).SerializeToString()
    assert await refused(channel, large, timeout=SOON) is grpc.StatusCode.RESOURCE_EXHAUSTED
    message = errand_message(counter.errand("round")).SerializeToString()
    assert await status(channel, message, timeout=SOON) is grpc.StatusCode.OK


async def test_garbage_on_the_port_harms_nobody(counter: Counter) -> None:
    for garbage in (GARBAGE, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", counter.port), timeout=SOON) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    assert len(await counter.ask("round")) == 1


async def test_health_says_whether_it_could_search(
    counter: Counter, channel: grpc.aio.Channel
) -> None:
    health = health_pb2_grpc.HealthStub(channel)

    async def is_now(wanted: int) -> bool:
        names = ("", SERVICE)
        answers = [await health.Check(health_pb2.HealthCheckRequest(service=n)) for n in names]
        return {answer.status for answer in answers} == {wanted}

    assert counter.process is not None
    await until(lambda: is_now(SERVING), "it to be ready")
    counter.process.send(signal.SIGUSR1)
    await until(lambda: is_now(NOT_SERVING), "it to notice that it cannot search")
    assert "not ready: the test says so" in counter.process.log
    counter.process.send(signal.SIGUSR2)
    await until(lambda: is_now(SERVING), "it to be ready again")


async def test_health_needs_no_token(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_TOKEN", "right")
    async with (
        counter_at(farm, remote=True, token_variable="DESK_TOKEN") as counter,
        grpc.aio.insecure_channel(f"127.0.0.1:{counter.port}") as channel,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        assert (await health.Check(health_pb2.HealthCheckRequest())).status in (1, 2)


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """The PEM files of a certificate for `name`, signed by itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    certificate_file, key_file = folder / "service.pem", folder / "service.key"
    certificate_file.write_bytes(made.public_bytes(encoding))
    key_file.write_bytes(key.private_bytes(encoding, form, plain))
    return str(certificate_file), str(key_file)


async def test_over_tls_only_who_trusts_the_certificate_asks(farm: Farm) -> None:
    public, private = certificate(farm.folder, "runner.example")
    keys: dict[str, Any] = {"tls_certificate": public, "tls_key": private}
    async with counter_at(farm, remote=True, **keys) as counter:
        with pytest.raises(Unavailable):  # in plain text
            await counter.ask("round", seconds=3.0)
        trusting = counter.config(tls_authority=public, tls_name="runner.example")
        stranger = counter.config(tls_authority=public)
        for config, rounds, seconds in ((trusting, 1, SOON), (stranger, 0, 3.0)):
            librarian = RemoteLibrarian(config, counter.app.queue.now)
            found = librarian.search(counter.asking(), counter.errand("round", seconds=seconds))
            try:
                assert len([turn async for turn in found]) == rounds
            except Unavailable:
                assert rounds == 0, "its certificate is for another name"
            await librarian.close()


async def cannot_serve(counter: Counter, **config: Any) -> str:
    async def ready() -> None:
        pass

    with pytest.raises(ConfigError) as caught:
        async with serving(
            counter.librarian,
            counter.service.asking,
            counter.app.queue.now,
            ready,
            LibrarianConfig(**config),
        ):
            pass
    return str(caught.value)


async def test_it_says_why_it_cannot_listen(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DESK_TOKEN", raising=False)
    assert "needs a token" in await cannot_serve(counter, host="::", port=0)
    said = await cannot_serve(counter, port=0, token_variable="DESK_TOKEN")
    assert "DESK_TOKEN must be set" in said
    assert "cannot listen on 127.0.0.1" in await cannot_serve(counter, port=counter.port)
    missing = {"tls_certificate": "/nowhere.pem", "tls_key": "/nowhere.key"}
    assert "No such file" in await cannot_serve(counter, port=0, **missing)
