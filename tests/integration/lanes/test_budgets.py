"""Budgets in the engine: what would spend is not begun, inside of jobs and outside of them."""

import json
from pathlib import Path

import pytest

from penstock import JobContext, Penstock
from penstock.errors import BudgetReached, ValidationError
from penstock.ports.ledger import UsageSum
from tests.integration.lanes.test_visits import service_of
from tests.support.counting_server import Answer, CountingServer
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

ANSWER = Answer(
    headers={"content-type": "application/json"},
    body=json.dumps({"usage": {"prompt_tokens": 60, "completion_tokens": 0}}).encode(),
)


async def test_a_request_in_a_job_waits_for_its_budget_and_spends_no_attempt(
    farm: Farm, server: CountingServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers |= {"/ask": ANSWER, "/page": Answer(body=b"page")}
    app = farm.bare()

    @app.job("call")
    async def call(ctx: JobContext) -> int:
        await ctx.http.get(server.url("/page"))  # that costs nothing
        await ctx.http.post(server.url("/ask"), json={"model": "small"}, lane="llm")
        return ctx.attempt

    async with app:
        await app.budgets.set("tenant:anna", tokens=100)
        async with app.running(max_workers=1):
            jobs = await app.enqueue_many("call", [{}] * 3, tenant="anna")
            await app.wait(jobs[1].id, timeout=PATIENCE)
            other = await app.enqueue("call", tenant="ben")
            await app.wait(other.id, timeout=PATIENCE)

            async def paused() -> bool:
                job = await app.get(jobs[2].id)
                return "budget tenant:anna: 120 of 100 tokens" in str(job.waiting_for)

            await until(paused, "the job to be paused")
            job = await app.get(jobs[2].id)
            assert (job.state.value, job.attempts) == ("queued", 0)
            assert len(server.at("/ask")) == 3
            assert "tokens spent this day; resumes" in caplog.text
            await app.budgets.set("tenant:anna", tokens=1000)
            assert (await app.wait(jobs[2].id, timeout=PATIENCE)).result == 1
        (anna, ben) = await app.usage("tenant")
        assert (anna.tokens, ben.tokens) == (180, 60)


async def test_a_visit_is_refused_before_its_request_is_made(
    farm: Farm, server: CountingServer
) -> None:
    server.answers["/ask"] = ANSWER
    app = farm.bare()
    async with service_of(app) as service:
        await app.budgets.set("tenant:anna", tokens=50)
        asking = service.asking("anna", app.queue.now() + PATIENCE)
        await asking.http.post(server.url("/ask"), json={"model": "small"}, lane="embedder")
        await until(lambda: app.usage("tenant"), "the charge")

        async def spent() -> bool:
            return (await app.budgets.list())[0].reached

        await until(spent, "the budget to be spent")
        with pytest.raises(BudgetReached, match="60 of 50 tokens spent"):
            await asking.http.post(server.url("/ask"), json={"model": "small"}, lane="embedder")
        with pytest.raises(BudgetReached):  # something was charged in this lane
            await asking.http.post(server.url("/ask"), lane="embedder")
        assert len(server.at("/ask")) == 1
        await app.budgets.remove("tenant:anna")
        await asking.http.post(server.url("/ask"), lane="embedder")

        async def told() -> UsageSum | None:
            (one,) = await app.usage("tenant")
            return one if one.tokens == 120 and not one.reserved else None

        assert await until(told, "the other charge")  # what was refused is not in the ledger


async def test_configured_budgets_are_set_when_workers_start(tmp_path: Path) -> None:
    def app_with(text: str) -> Penstock:
        file = tmp_path / "penstock.yaml"
        file.write_text(text)
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", config_file=str(file))
        app.job("nothing")(lambda ctx: None)
        return app

    async def limits(app: Penstock) -> list[tuple[str, int | None, str]]:
        async with app.running():
            return [(one.payer, one.cost_limit, one.per) for one in await app.budgets.list()]

    text = "budgets:\n  tenant:acme: {cost: 5.0, per: month, timezone: Europe/Berlin}\n"
    configured = [("tenant:acme", 5_000_000, "month")]
    assert await limits(app_with(text)) == configured
    async with app_with(text) as app:
        await app.budgets.set("tenant:acme", cost=9.0, per="week")
    assert await limits(app_with(text)) == [("tenant:acme", 9_000_000, "week")]
    assert await limits(app_with(text.replace("5.0", "6.0"))) == [
        ("tenant:acme", 6_000_000, "month")
    ]
    with pytest.raises(ValidationError, match="tenant:NAME"):
        async with app_with(text) as app:
            await app.budgets.set("acme", cost=9.0)
