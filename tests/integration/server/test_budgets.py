"""Budgets over HTTP and on the command line: a tenant sees its own, an admin sets them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.model.access import KeyScope
from penstock.ports.ledger import Charge, Payer
from tests.support.app_api import Site, site_in


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_in(tmp_path) as site:
        yield site


async def test_an_admin_sets_them_and_a_tenant_sees_its_own(site: Site) -> None:
    async with await site.client("carl") as admin:
        for payer in ("tenant:anna", "task:anna/1", "tenant:ann", "task:ann/1"):
            answer = await admin.put(f"/v1/budgets/{payer}", json={"cost": 2.0, "per": "total"})
            assert answer.status_code == 200, answer.text
        spent = Charge("1", site.app.queue.now(), Payer("anna"), "llm", "m", 7, 0, 0, 1_700_000)
        await site.app.queue.charge([spent])
        answer = await admin.get("/v1/budgets/tenant:anna")
        told = answer.json()
        assert (told["cost"], told["spent_cost"], told["share"]) == (2.0, 1.7, 0.85)
        assert (told["ends"], told["reached"], told["lanes"]) == (None, False, ["llm"])
        seen = (await admin.get("/v1/overview")).json()["attention"]
        assert [(one["what"], one["subject"]) for one in seen] == [
            ("budget nearly spent", "tenant:anna")
        ]
        metrics = (await admin.get("/metrics")).text
        assert 'penstock_budget_spent{of="cost",payer="tenant:anna"} 1.7' in metrics
        assert len((await admin.get("/v1/budgets")).json()["budgets"]) == 4
        assert (await admin.put("/v1/budgets/anna", json={"cost": 1.0})).status_code == 422
        assert (await admin.put("/v1/budgets/tenant:anna", json={})).status_code == 422
        assert (await admin.delete("/v1/budgets/tenant:ann")).json() == {"removed": "tenant:ann"}
        assert (await admin.delete("/v1/budgets/tenant:ann")).status_code == 404
        assert (await admin.get("/v1/budgets/tenant:ann")).status_code == 404
    async with await site.client("anna", KeyScope.READ) as anna:
        seen = (await anna.get("/v1/budgets")).json()["budgets"]
        assert [one["payer"] for one in seen] == ["task:anna/1", "tenant:anna"]
        assert (await anna.get("/v1/budgets/task:anna/1")).json() == seen[0]
        assert (await anna.get("/v1/budgets/tenant:carl")).status_code == 404
        assert (await anna.get("/v1/budgets/task:ann/1")).status_code == 404, "as one that is not"
        assert (await anna.put("/v1/budgets/tenant:anna", json={"cost": 9.0})).status_code == 403


async def test_commands(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    async def penstock(*arguments: str) -> tuple[int, str, str]:
        queue = ("--queue", site.app.queue.url)
        code = await asyncio.to_thread(main, ["budgets", *arguments, *queue])
        return (code, *capsys.readouterr())

    assert await penstock() == (0, "", "no budgets\n")
    code, out, _ = await penstock("set", "tenant:acme", "--cost", "5", "--tokens", "100")
    assert (code, out) == (0, "tenant:acme  0.00 of 5.00 and 0 of 100 tokens spent\n")
    await site.app.queue.charge(
        [Charge("1", site.app.queue.now(), Payer("acme"), "llm", "m", 100, 0, 0, 1)]
    )
    code, out, _ = await penstock()
    assert code == 0
    assert out.splitlines()[1].split()[-1] == "reached"
    _, out, _ = await penstock("list", "--json")
    assert json.loads(out)[0]["spent_tokens"] == 100
    code, _, err = await penstock("set", "tenant:acme")
    assert code == 2
    assert "needs cost, tokens or both" in err
    code, _, err = await penstock("set", "acme", "--cost", "1")
    assert code == 2
    assert "tenant:NAME" in err
    assert (await penstock("remove", "tenant:acme"))[0] == 0
    code, _, err = await penstock("remove", "tenant:acme")
    assert code == 3
    assert "has no budget" in err
