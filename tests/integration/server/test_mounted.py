"""The API and the dashboard below a path of somebody else's application."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection

from penstock import JobContext, Penstock
from penstock.server.mount import mounted, place
from penstock.types import Caller, KeyScope

PATIENCE = 250.0
SCOPES = {
    "ada": frozenset(KeyScope),
    "bob": frozenset([KeyScope.READ]),
}
TENANTS = {"ada": "mills", "bob": "weirs"}


class ByHeader(AuthenticationBackend):
    """The application's own way to know its users."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        name = conn.cookies.get("session") or conn.headers.get("x-user")
        return None if name is None else (AuthCredentials(["signed in"]), SimpleUser(name))


def who(request: Request) -> Caller | None:
    if not request.user.is_authenticated:
        return None
    name = request.user.username
    if name == "banned":
        raise HTTPException(403, "you are banned")
    return Caller(TENANTS[name], SCOPES[name], key=f"user:{name}", name=name)


async def who_later(request: Request) -> Caller | None:
    await asyncio.sleep(0)
    return who(request)


@pytest.fixture
def app(tmp_path: Path) -> Penstock:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False)

    @app.job
    async def double(ctx: JobContext, n: int) -> int:
        await ctx.emit("working")
        return 2 * n

    return app


Site = Callable[..., Any]


class Server(uvicorn.Server):
    """One that says when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def served(site: Any, root_path: str = "") -> AsyncIterator[str]:
    """A real server of the application."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(site, log_config=None, lifespan="on", root_path=root_path)
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


def client(url: str, user: str | None = None, **headers: str) -> httpx.AsyncClient:
    known = {} if user is None else {"x-user": user}
    return httpx.AsyncClient(base_url=url, headers=known | headers, timeout=PATIENCE)


@pytest.mark.parametrize("make", [FastAPI, Starlette])
async def test_api_and_dashboard_are_moved_below_the_path(app: Penstock, make: Site) -> None:
    site = make(lifespan=app.lifespan(workers=2))
    site.add_middleware(AuthenticationMiddleware, backend=ByHeader())
    site.mount("/ops/queue", mounted(app, caller=who))
    async with served(site) as url, client(url, "ada") as ada:
        # The API, and what it tells of addresses.
        made = await ada.post("/ops/queue/v1/jobs", json={"kind": "double", "payload": {"n": 4}})
        assert made.status_code == 202, made.text
        where = made.headers["location"]
        assert where == f"/ops/queue/v1/jobs/{made.json()['id']}"
        done = (await ada.get(where, params={"wait": 60})).json()
        assert (done["result"], done["tenant"]) == (8, "mills")
        described = (await ada.get("/ops/queue/openapi.json")).json()
        assert described["servers"] == [{"url": "/ops/queue"}]
        assert "/v1/jobs" in described["paths"]
        # A stream of events.
        events = [line async for line in lines(ada, f"{where}/events")]
        assert [one for one in events if one.startswith("event:")][-1] == "event: end"
        # Pages, and what they lead to.
        home = await ada.get("/ops/queue/")
        assert home.status_code == 200
        assert "Sign out" not in home.text, "they have signed in elsewhere"
        links = set(re.findall(r'(?:href|src|action|hx-[a-z:]+)="(/[^"]*)"', home.text))
        assert len(links) > 10
        assert [one for one in links if not one.startswith("/ops/queue/")] == []
        for link in sorted(links):
            if "/live/" not in link and not link.endswith("sign-out"):
                assert (await ada.get(link)).status_code == 200, link
        (live,) = [one for one in links if "/live/" in one]
        first = [line async for line in lines(ada, live, 3)]
        page = await ada.get(f"/ops/queue/jobs/{done['id']}")
        assert 'href="/ops/queue/jobs?kind=double"' in page.text
        assert first
        # A form, and where it leads.
        same = {"sec-fetch-site": "same-origin", "origin": url}
        form = {"what": "rerun", "confirmed": "yes"}
        again = await ada.post(f"/ops/queue/jobs/{done['id']}/rerun", data=form, headers=same)
        assert again.status_code == 303
        assert again.headers["location"].startswith("/ops/queue/jobs/")
        assert "Path=/ops/queue;" in again.headers["set-cookie"] + ";"
        lost = (await ada.get("/ops/queue/v1/nothing")).json()
        assert "; /ops/queue/openapi.json says" in lost["detail"]
        # The rest of the site is theirs.
        assert (await ada.get("/v1/jobs")).status_code == 404


async def lines(client: httpx.AsyncClient, path: str, most: int = 10_000) -> AsyncIterator[str]:
    async with client.stream("GET", path) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            yield line
            most -= 1
            if not most:
                return


async def test_users_of_the_site_are_tenants_with_scopes(app: Penstock) -> None:
    site = FastAPI(lifespan=app.lifespan(workers=0))
    site.add_middleware(AuthenticationMiddleware, backend=ByHeader())
    site.mount("/queue", mounted(app, caller=who_later, sign_in="/login"))
    job = {"kind": "double", "payload": {"n": 1}}
    async with served(site) as url:
        async with client(url, "ada") as ada, client(url, "bob") as bob:
            mine = (await ada.post("/queue/v1/jobs", json=job)).json()
            assert (await bob.get(f"/queue/v1/jobs/{mine['id']}")).status_code == 404
            refused = await bob.post("/queue/v1/jobs", json=job)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert "read only" in (await bob.get("/queue/")).text
            actions = (await ada.get("/queue/v1/actions")).json()["actions"]
            assert {one["key_name"] for one in actions} <= {"ada"}
        async with client(url, "banned") as banned:
            told = await banned.get("/queue/v1/jobs")
            assert (told.status_code, told.json()["detail"]) == (403, "you are banned")
        _, secret = await app.keys.create("robot", tenant="mills")
        async with client(url) as nobody:
            assert (await nobody.get("/queue/v1/jobs")).status_code == 401
            page = await nobody.get("/queue/jobs?state=failed")
            assert page.status_code == 303
            assert page.headers["location"] == "/login?next=%2Fqueue%2Fjobs%3Fstate%3Dfailed"
            bearer = {"Authorization": f"Bearer {secret.reveal()}"}
            listed = (await nobody.get("/queue/v1/jobs", headers=bearer)).json()
            assert [one["id"] for one in listed["jobs"]] == [mine["id"]]


async def test_a_hook_that_returns_no_caller_is_told_in_the_log_what_to_return(
    app: Penstock, caplog: pytest.LogCaptureFixture
) -> None:
    def text(request: Request) -> Any:
        return request.user.username

    site = FastAPI(lifespan=app.lifespan(workers=0))
    site.add_middleware(AuthenticationMiddleware, backend=ByHeader())
    site.mount("/queue", mounted(app, caller=text))
    async with served(site) as url, client(url, "ada") as ada:
        told = await ada.get("/queue/v1/jobs")
        assert (told.status_code, told.json()["code"]) == (500, "internal")
        assert (await ada.get("/queue/")).status_code == 500
    assert "caller= of mounted() returned a str: return None for nobody, or a Caller" in caplog.text


async def test_cookies_of_the_site_are_no_good_to_other_sites(app: Penstock) -> None:
    site = Starlette(lifespan=app.lifespan(workers=0))
    site.add_middleware(AuthenticationMiddleware, backend=ByHeader())
    site.mount("/queue", mounted(app, caller=who))
    job = json.dumps({"kind": "double", "payload": {"n": 1}})
    async with served(site) as url, client(url, cookie="session=ada") as browser:
        assert (await browser.get("/queue/v1/jobs")).status_code == 200
        foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        posted = await browser.post("/queue/v1/jobs", content=job, headers=foreign)
        assert (posted.status_code, posted.json()["code"]) == (403, "wrong-origin")
        unnamed = await browser.get("/queue/v1/jobs", headers={"sec-fetch-site": "cross-site"})
        assert unnamed.status_code == 401
        form = await browser.post(
            "/queue/jobs/change", data={"what": "cancel"}, headers={"sec-fetch-site": "same-site"}
        )
        assert form.status_code == 403


async def test_without_a_hook_everybody_needs_a_key_and_the_dashboard_asks(app: Penstock) -> None:
    site = FastAPI(lifespan=app.lifespan(workers=0))
    site.mount("/queue", mounted(app))
    async with served(site) as url, client(url) as nobody:
        assert (await nobody.get("/queue/v1/jobs")).status_code == 401
        asked = await nobody.get("/queue/lanes")
        assert asked.headers["location"] == "/queue/sign-in?next=%2Flanes"
        _, secret = await app.keys.create("me")
        form = {"key": secret.reveal(), "next": "/lanes"}
        same = {"sec-fetch-site": "same-origin", "origin": url}
        entered = await nobody.post("/queue/sign-in", data=form, headers=same)
        assert (entered.status_code, entered.headers["location"]) == (303, "/queue/lanes")
        assert "Path=/queue;" in entered.headers["set-cookie"] + ";"
        assert (await nobody.get("/queue/lanes")).status_code == 200, "by the cookie"


async def test_behind_a_proxy_that_has_a_path_of_its_own(app: Penstock) -> None:
    site = FastAPI(lifespan=app.lifespan(workers=0))
    site.add_middleware(AuthenticationMiddleware, backend=ByHeader())
    site.mount("/queue", mounted(app, caller=who))
    async with served(site, root_path="/shop") as url, client(url, "ada") as ada:
        page = await ada.get("/queue/jobs")  # the proxy has taken /shop off
        assert page.status_code == 200
        assert 'href="/shop/queue/lanes"' in page.text
        described = (await ada.get("/queue/openapi.json")).json()
        assert described["servers"] == [{"url": "/shop/queue"}]


async def test_an_application_that_did_not_start_the_queue_is_told(app: Penstock) -> None:
    site = FastAPI()
    site.mount("/queue", mounted(app))
    async with served(site) as url, client(url) as nobody:
        told = await nobody.get("/queue/v1/jobs")
        assert told.status_code == 503
        assert "lifespan=app.lifespan()" in told.json()["detail"]


async def test_a_lifespan_can_be_entered_again_and_within_another(app: Penstock) -> None:
    @asynccontextmanager
    async def own(site: FastAPI) -> AsyncIterator[None]:
        async with app.lifespan(workers=1)(site):
            yield

    site = FastAPI(lifespan=own)
    site.mount("/queue", mounted(app))

    @site.post("/double/{n}")
    async def double(n: int) -> int:
        job = await app.enqueue("double", {"n": n})
        result: int = await app.result(job.id, PATIENCE)
        return result

    for n in range(2):
        async with served(site) as url, client(url) as nobody:
            assert (await nobody.post(f"/double/{n}")).json() == 2 * n
            assert (await nobody.get("/queue/healthz")).status_code == 200
            (process,) = await app.processes()
            assert process.max_workers == 1


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        ({"path": "/q/jobs", "root_path": "/q", "raw_path": b"/q/jobs"}, ("/q", "/jobs")),
        ({"path": "/q/a/b", "root_path": "/q", "raw_path": b"/q/a%2Fb"}, ("/q", "/a%2Fb")),
        ({"path": "/q", "root_path": "/q", "raw_path": None}, ("/q", "/")),
        ({"path": "/a b/x y", "root_path": "/a b", "raw_path": None}, ("/a%20b", "/x%20y")),
        (
            {"path": "/q/j", "root_path": "/s/q", "app_root_path": "/s", "raw_path": b"/q/j"},
            ("/s/q", "/j"),
        ),
        ({"path": "/jobs", "raw_path": b"/jobs"}, ("", "/jobs")),
    ],
)
def test_the_place_of_a_request_is_told_from_its_scope(
    scope: dict[str, Any], found: tuple[str, str]
) -> None:
    assert place(scope) == found
