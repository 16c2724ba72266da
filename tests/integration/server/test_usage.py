"""Usage over HTTP and on the command line: a tenant sees its own, an admin all."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.model.access import KeyScope
from penstock.ports.ledger import Charge, Payer, day_name
from tests.conformance.lane_support import a_day_ahead
from tests.support.app_api import Site, site_in

READ = KeyScope.READ


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    await a_day_ahead()
    async with site_in(tmp_path) as site:
        now = site.app.queue.now()
        rows: list[tuple[Any, ...]] = [
            ("1", "anna", "large", 100, 70, 30, 1_250_000),
            ("2", "anna", "large", 10, 0, 0, None),
            ("3", "bert", "small", 5, 5, 0, None),
            ("4", "bert", "=small", 1, 1, 0, 0),
        ]
        await site.app.queue.charge(
            [
                Charge(name, now, Payer(tenant, "notes", f"job{name}", "ask"), "llm", *rest)
                for name, tenant, *rest in rows
            ]
        )
        yield site


def today(site: Site) -> str:
    return day_name(int(site.app.queue.now() // 86400))


async def test_tenant_sees_its_own_and_an_admin_all(site: Site) -> None:
    async with await site.client("anna", READ) as anna:
        assert (await anna.get("/v1/usage")).json() == {
            "by": "day",
            "usage": [
                {
                    "name": today(site),
                    "requests": 2,
                    "tokens": 110,
                    "input_tokens": 70,
                    "output_tokens": 30,
                    "cost": 1.25,
                    "unpriced": 1,
                    "reserved": 0,
                }
            ],
        }
        for by in ("tenant", "task", "job", "kind", "lane", "model"):
            seen = (await anna.get("/v1/usage", params={"by": by})).json()["usage"]
            assert sum(one["requests"] for one in seen) == 2
        refused = await anna.get("/v1/usage?all_tenants=true")
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    async with await site.client("carl") as admin:
        assert (await admin.get("/v1/usage")).json()["usage"] == []
        seen = (await admin.get("/v1/usage?all_tenants=true&by=tenant")).json()["usage"]
        assert [(one["name"], one["cost"], one["unpriced"]) for one in seen] == [
            ("anna", 1.25, 1),
            ("bert", 0.0, 1),
        ]
        seen = (await admin.get("/v1/usage?all_tenants=true&by=model")).json()["usage"]
        assert [(one["name"], one["cost"]) for one in seen] == [
            ("large", 1.25),
            ("small", None),
            ("=small", 0.0),
        ]


async def test_days_are_chosen_and_nonsense_is_refused(site: Site) -> None:
    async with await site.client("anna", READ) as anna:
        assert (await anna.get(f"/v1/usage?since={today(site)}")).json()["usage"]
        assert (await anna.get("/v1/usage?until=2020-01-01")).json()["usage"] == []
        for nonsense in ("by=colour", "since=soon", "format=xml", "tenant=bert"):
            assert (await anna.get(f"/v1/usage?{nonsense}")).status_code == 422


async def test_csv_is_safe_to_open_and_unknown_is_empty(site: Site) -> None:
    async with await site.client("bert", READ) as bert:
        answer = await bert.get("/v1/usage?by=model&format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.text.splitlines() == [
        "model,requests,tokens,input_tokens,output_tokens,cost,unpriced,reserved",
        "small,1,5,5,0,,1,0",
        "'=small,1,1,1,0,0.0,0,0",
    ]


async def test_command_prints_a_table_json_and_csv(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio
    import json

    async def penstock(*arguments: str) -> tuple[int, str, str]:
        queue = ("--queue", site.app.queue.url)
        code = await asyncio.to_thread(main, ["usage", *arguments, *queue])
        return (code, *capsys.readouterr())

    code, out, _ = await penstock("--by", "tenant")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines == [
        ["TENANT", "REQUESTS", "TOKENS", "INPUT", "OUTPUT", "COST", "RESERVED"],
        ["anna", "2", "110", "70", "30", "1.25", "+", "1", "unknown", "0"],
        ["bert", "2", "6", "6", "0", "0.00", "+", "1", "unknown", "0"],
    ]
    _, out, _ = await penstock("--by", "model", "--tenant", "bert", "--since", today(site))
    assert out.splitlines()[1].split()[-2:] == ["unknown", "0"]
    _, out, _ = await penstock("--json")
    assert json.loads(out)["usage"][0]["requests"] == 4
    _, out, _ = await penstock("--csv", "--by", "day")
    assert out.splitlines()[1].startswith(f"{today(site)},4,")
    code, _, err = await penstock("--until", "2020-01-01")
    assert (code, err) == (0, "nothing was used that matches\n")
    code, _, err = await penstock("--since", "soon")
    assert code == 2
    assert "since must be a day such as 2026-01-31, not 'soon'" in err
