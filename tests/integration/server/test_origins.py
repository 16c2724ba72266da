"""Pages of other origins: those that are named may call the API with a key, all others nothing."""

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import httpx2 as httpx
import pytest

from penstock.errors import ConfigError
from penstock.model.server import ServerConfig
from tests.support.app_api import Site, site_in

PAGE = "https://app.example.org"
EXTENSION = "chrome-extension://abcdefghijklmnopabcdefghijklmnop"
OTHERS = (
    "https://evil.example",
    "http://app.example.org",
    "https://app.example.org:8443",
    "https://sub.app.example.org",
    "https://app.example.org.evil.example",
    "chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba",
    "null",
    "",
)
ALLOW = "access-control-allow-origin"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    # Everybody else who reaches it needs no key: the strictest case for what an origin may do.
    config = ServerConfig(origins=(PAGE, EXTENSION), allow_anonymous=True)
    async with site_in(tmp_path, config=config) as site:
        yield site


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    async with await site.client() as client:
        yield client


def no_key(client: httpx.AsyncClient) -> None:
    del client.headers["Authorization"]


def cors(answer: httpx.Response) -> list[str]:
    return [name for name in answer.headers if name.startswith("access-control-")]


async def test_a_named_origin_calls_the_api_with_a_key(client: httpx.AsyncClient) -> None:
    for origin in (PAGE, EXTENSION):
        sent = {"Origin": origin, "Idempotency-Key": "one"}
        made = await client.post("/v1/jobs", json={"kind": "add"}, headers=sent)
        assert made.status_code == 202
        assert made.headers[ALLOW] == origin
        assert made.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in made.headers
        exposed = set(made.headers["access-control-expose-headers"].split(", "))
        assert {"Location", "Retry-After", "RateLimit", "Idempotency-Replayed"} <= exposed
        assert made.headers.get("idempotency-replayed") == (None if origin == PAGE else "true")


async def test_a_named_origin_is_nobody_without_a_key(client: httpx.AsyncClient) -> None:
    no_key(client)
    assert (await client.get("/v1/jobs")).status_code == 200, "a program on this machine"
    sent = {"Origin": PAGE, "Cookie": "penstock_key=pk_x"}
    for refused in (
        await client.get("/v1/jobs", headers=sent),
        await client.post("/v1/jobs", json={"kind": "add"}, headers=sent),
        await client.post("/v1/lanes/openalex/pause", headers=sent),
        await client.get("/v1/events", headers=sent),
        await client.post("/mcp", json={}, headers=sent),
    ):
        assert refused.status_code == 401
        assert "another origin needs a key" in refused.json()["detail"]
        assert refused.headers[ALLOW] == PAGE, "a script can read why"
    assert (await client.get("/v1/jobs")).json()["jobs"] == []


async def test_an_origin_that_is_not_named_gets_nothing(client: httpx.AsyncClient) -> None:
    for origin, method in product(OTHERS, ("GET", "POST", "OPTIONS")):
        sent = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        refused = await client.request(method, "/v1/jobs", headers=sent)
        assert (refused.status_code, refused.json()["code"]) == (403, "wrong-origin"), origin
        assert "server.origins" in refused.json()["detail"]
        assert cors(refused) == []
        assert refused.headers["vary"] == "Origin", "no cache gives it to a named one"
    both = [("Origin", PAGE), ("Origin", "https://evil.example")]
    refused = await client.get("/v1/jobs", headers=both)
    assert (refused.status_code, cors(refused)) == (403, [])


async def test_pages_of_the_dashboard_are_for_no_other_origin(client: httpx.AsyncClient) -> None:
    pages = ("/", "/jobs", "/sign-in", "/metrics", "/static/x/dashboard.css")
    for path, method in product(pages, ("GET", "POST", "OPTIONS")):
        sent = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
        refused = await client.request(method, path, headers=sent)
        assert (refused.status_code, cors(refused)) == (403, []), path


async def test_a_preflight_says_what_may_be_sent(client: httpx.AsyncClient) -> None:
    no_key(client)  # browsers send none with it
    sent = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
    }
    told = await client.options("/v1/index/a", headers=sent)
    assert (told.status_code, told.headers[ALLOW], told.content) == (204, PAGE, b"")
    headers = set(told.headers["access-control-allow-headers"].split(", "))
    assert {"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"} <= headers
    assert "PUT" in told.headers["access-control-allow-methods"].split(", ")
    assert int(told.headers["access-control-max-age"]) > 0
    assert "access-control-allow-private-network" not in told.headers
    sent["Access-Control-Request-Private-Network"] = "true"
    told = await client.options("/v1/index/a", headers=sent)
    assert told.headers["access-control-allow-private-network"] == "true"
    misled = await client.options("/v1/index/a", headers={**sent, "Host": "evil.example"})
    assert misled.status_code == 421, "the host is looked at as ever"


async def test_errors_can_be_read_by_the_page(site: Site, client: httpx.AsyncClient) -> None:
    sent = {"Origin": PAGE}
    answers = [
        await client.get("/v1/jobs/nobody", headers=sent),
        await client.get("/v1/nowhere", headers=sent),
        await client.delete("/v1/jobs", headers=sent),
        await client.post("/v1/jobs", json={"nonsense": 1}, headers=sent),
        await client.get("/v1/jobs", headers={**sent, "Authorization": "Bearer wrong"}),
        await client.get("/v1/jobs?kind=%00", headers=sent),
        await client.get("/v1/jobs", headers={**sent, "Host": "elsewhere.example"}),
    ]
    site.draining.begin()
    answers.append(await client.get("/v1/jobs", headers=sent))
    assert [one.status_code for one in answers] == [404, 404, 405, 422, 401, 422, 421, 503]
    assert [one.headers.get(ALLOW) for one in answers] == [PAGE] * len(answers)


async def test_a_stream_can_be_read_by_the_page(site: Site) -> None:
    sent = {"Origin": PAGE, "Authorization": f"Bearer {await site.secret()}"}
    async with (
        site.listening() as address,
        httpx.AsyncClient(base_url=address, timeout=60) as client,
        client.stream("GET", "/v1/events", headers=sent) as stream,
    ):
        assert (stream.status_code, stream.headers[ALLOW]) == (200, PAGE)
        assert stream.headers["content-type"].startswith("text/event-stream")


async def test_nobody_is_named_unless_somebody_is(tmp_path: Path) -> None:
    async with site_in(tmp_path) as site, await site.client() as client:
        refused = await client.get("/v1/jobs", headers={"Origin": PAGE})
        assert (refused.status_code, cors(refused)) == (403, [])
        assert "vary" not in refused.headers
        own = await client.get("/v1/jobs", headers={"Origin": "http://localhost"})
        assert (own.status_code, cors(own)) == (200, [])


async def test_a_page_that_does_not_say_its_origin_is_nobody_either(
    client: httpx.AsyncClient,
) -> None:
    no_key(client)
    blind = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    for sent, status in (
        (blind, 401),
        ({**blind, "Sec-Fetch-Site": "same-site"}, 401),
        ({**blind, "Sec-Fetch-Site": "same-origin"}, 200),
        ({**blind, "Sec-Fetch-Mode": "navigate"}, 200),
    ):
        assert (await client.get("/v1/jobs", headers=sent)).status_code == status, sent


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("*", "every page there is"),
        ("null", "every page there is"),
        ("app.example.org", "is no origin"),
        ("https://*.example.org", "is no origin"),
        ("https://", "is no origin"),
        ("http://localhost:port", "is no origin"),
        ("https://app.example.org/", "browsers as https://app.example.org;"),
        ("https://App.example.org:443", "browsers as https://app.example.org;"),
        ("http://user@localhost:3000", "browsers as http://localhost:3000;"),
        ("http://[::1]:80/x?y#z", "browsers as http://[::1];"),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(given: str, said: str) -> None:
    with pytest.raises(ConfigError) as told:
        ServerConfig(origins=(given,))
    assert said in str(told.value)
