"""Research by way of the server and the command line: their config file, with providers on
loopback, and what is asked of the API again and again."""

from __future__ import annotations

import time
from typing import Any

import httpx2 as httpx

from tests.support.cli import Cli
from tests.support.config_file import config_text
from tests.support.embedder import toy
from tests.support.provider_server import PATHS
from tests.support.research import FREE, QUICK, SOON, ResearchSite

PATIENT = {"provider_seconds": 60.0, "page_seconds": 60.0}
"""Settings with which nobody is left out because the machine is busy."""


def settings(site: ResearchSite) -> dict[str, Any]:
    """What is set for research, by names alone."""
    return {
        "providers": {
            name: {"base_url": site.url("/" + path.split("/")[1])} for name, path in PATHS.items()
        },
        "search_providers": list(FREE),
        "fetch_allow": [f"127.0.0.1:{site.port}"],
        "lanes": dict.fromkeys([*PATHS, "host:*", "embedder"], QUICK),
        "provider_seconds": 10.0,
        "page_seconds": 20.0,
    }


def configure(cli: Cli, site: ResearchSite, **more: Any) -> None:
    """`penstock.yaml` for commands, with an embedder that the site is, too."""
    known = {"embedder": toy(site), **settings(site), **more}
    (cli.folder / "penstock.yaml").write_text(config_text(known))


async def new_task(client: httpx.AsyncClient, *queries: str, **searches: Any) -> str:
    """The id of a task that was made over HTTP, with these searches."""
    made = await client.post("/v1/tasks", json={"question": "How do water wheels turn?"})
    assert made.status_code == 201, made.text
    task_id = str(made.json()["task_id"])
    if queries:
        await add(client, task_id, *queries, **searches)
    return task_id


async def add(client: httpx.AsyncClient, task_id: str, *queries: str, **searches: Any) -> Any:
    body = {"queries": list(queries), **searches}
    answer = await client.post(f"/v1/tasks/{task_id}/searches", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def finished(client: httpx.AsyncClient, task_id: str) -> Any:
    """The task once it is finished, by long polls that each bring a change."""
    since, give_up = 0, time.monotonic() + SOON
    while True:
        answer = await client.get(f"/v1/tasks/{task_id}?wait=20&since={since}")
        assert answer.status_code == 200, answer.text
        task = answer.json()
        if task["next_poll"] is None:
            return task
        assert time.monotonic() < give_up, task
        since = task["version"]
