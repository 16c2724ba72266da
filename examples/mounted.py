"""Jobs in a FastAPI application: workers in its lifespan, dashboard and API below a path of it.

Run it:   uvicorn --timeout-graceful-shutdown 5 examples.mounted:site
"""

import asyncio
from typing import Any

import httpx2 as httpx
from fastapi import FastAPI, Request

from penstock import JobContext, Penstock
from penstock.server.mount import mounted
from penstock.types import Caller, KeyScope

app = Penstock()
USERS = {"ada": "mills", "bob": "weirs"}  # and the tenant of each


@app.job
async def resize(ctx: JobContext, url: str, width: int = 800) -> dict[str, Any]:
    return {"url": url, "width": width}


def who(request: Request) -> Caller | None:
    """The caller of a request, by what the application knows of its user."""
    name = request.headers.get("x-user", "")  # or request.user, request.session ...
    if name not in USERS:
        return None
    return Caller(USERS[name], frozenset([KeyScope.READ, KeyScope.WRITE]), key=name, name=name)


site = FastAPI(lifespan=app.lifespan(workers=4))
site.mount("/queue", mounted(app, caller=who, sign_in="/login"))


@site.post("/pictures/{name}")
async def enlarge(name: str) -> dict[str, str]:
    ref = await resize.with_options(tenant="mills").enqueue(name, width=1600)
    return {"job": ref.id}


async def main() -> None:
    transport = httpx.ASGITransport(app=site)
    async with (
        site.router.lifespan_context(site),  # a server does it
        httpx.AsyncClient(transport=transport, base_url="http://shop.example") as client,
    ):
        job = (await client.post("/pictures/cat.jpg")).json()["job"]
        as_ada, as_bob = {"x-user": "ada"}, {"x-user": "bob"}
        found = await client.get(f"/queue/v1/jobs/{job}", params={"wait": 30}, headers=as_ada)
        print(found.json()["state"], found.json()["result"])
        assert found.json()["result"] == {"url": "cat.jpg", "width": 1600}
        assert (await client.get(f"/queue/v1/jobs/{job}", headers=as_bob)).status_code == 404
        page = await client.get("/queue/", headers=as_ada)
        assert 'href="/queue/jobs"' in page.text
        nobody = await client.get("/queue/")
        assert nobody.headers["location"] == "/login?next=%2Fqueue%2F"


if __name__ == "__main__":
    asyncio.run(main())
