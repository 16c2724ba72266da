"""A query parameter that a route of the API does not have is refused, wherever that is."""

import httpx2 as httpx
import pytest

from penstock import Penstock
from penstock.model.server import ServerConfig
from penstock.server.api import build
from penstock.server.draining import Draining

UNLIKE_ANY = "zzzz"


@pytest.fixture
def client(tmp_path_factory: pytest.TempPathFactory) -> httpx.AsyncClient:
    """Of an API whose app is not open: nothing that is asked here gets as far as the queue."""
    queue = f"sqlite:///{tmp_path_factory.mktemp('server')}/jobs.db"
    api = build(Penstock(queue), ServerConfig(allow_anonymous=True), Draining())
    transport = httpx.ASGITransport(api)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def test_every_route_refuses_it_and_names_those_there_are(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()["paths"]
    asked = 0
    for path, operations in described.items():
        for method, operation in operations.items():
            if not path.startswith("/v1/"):
                continue
            answer = await client.request(method, path, params={UNLIKE_ANY: "1"})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), (method, path)
            parameters = operation.get("parameters", ())
            names = sorted(one["name"] for one in parameters if one["in"] == "query")
            there = f"there are: {', '.join(names)}" if names else "there are none here"
            detail = f"query.{UNLIKE_ANY}: there is no such parameter; {there}"
            assert answer.json()["detail"] == detail, (method, path)
            asked += 1
    assert asked > 40


async def test_a_slip_in_a_filter_is_told_what_was_meant(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/jobs", params={"kind": "mail", "stat": "failed"})
    assert answer.status_code == 422
    what = "there is no such parameter; did you mean state?"
    assert answer.json()["errors"] == [{"where": "query.stat", "what": what}]


async def test_pages_may_carry_others(client: httpx.AsyncClient) -> None:
    answer = await client.get("/search", params={UNLIKE_ANY: "1"})
    assert answer.status_code == 200
