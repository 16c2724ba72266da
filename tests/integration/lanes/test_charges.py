"""What requests use is in the ledger: of HTTP answers, of services, and of killed runs."""

import json
from collections import Counter

from penstock import JobContext, Penstock
from penstock.errors import PenstockError
from penstock.ports.ledger import UsageSum
from penstock.ports.queue import JobFilter
from tests.integration.lanes.test_visits import service_of
from tests.support.counting_server import Answer, CountingServer
from tests.support.metered_provider import Limits, MeteredProvider
from tests.support.spending import requests_of
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

JSON = {"content-type": "application/json"}


async def used(app: Penstock, by: str = "model") -> dict[str, tuple[int, ...]]:
    """Requests, tokens, input, output, cost, of unknown price, reserved."""
    return {name: tuple(one) for name, *one in await app.usage(by)}  # type: ignore[arg-type]


def answer(**usage: float) -> Answer:
    body = {"model": "large-2025-01-01", "usage": usage}
    return Answer(headers=JSON, body=json.dumps(body).encode())


async def test_use_that_answers_tell_is_charged_also_where_no_lane_counts(
    farm: Farm, server: CountingServer
) -> None:
    vectors = b"[" + b"0.125," * 20_000 + b"1]"
    batch = b'{"data": ' + vectors + b', "usage": {"prompt_tokens": 7, "total_tokens": 7}}'
    server.answers |= {
        "/ask": answer(prompt_tokens=60, completion_tokens=40),
        "/paid": answer(input_tokens=1, output_tokens=2, cost=0.25),
        "/embed": Answer(headers=JSON, body=batch),
        "/page": Answer(headers={"content-type": "text/html"}, body=b'"usage": {"cost": 1}'),
        "/other": Answer(headers=JSON, body=b'{"usage": "see the manual"}'),
        "/busy": Answer(429, headers={"retry-after": "0", **JSON}, body=b'{"usage": {"cost": 9}}'),
    }
    app = farm.bare(lanes={"model": {"min_interval_seconds": 0, "max_parallel": 2}})

    @app.job("call", lane="model")
    async def call(ctx: JobContext) -> None:
        for path in ("/ask", "/ask", "/paid", "/page", "/other"):
            await ctx.http.post(server.url(path))
        await ctx.http.post(server.url("/embed"), json={"model": "vectors", "input": ["x"]})
        await ctx.http.post(server.url("/ask"), json={"model": "x"}, amount=5000)
        await ctx.http.post(server.url("/page"), lane="elsewhere", amount={"tokens": 9, "cost": 1})

    async with app:
        async with app.running():
            done = await app.wait((await app.enqueue("call")).id, timeout=PATIENCE)
        assert done.error is None, done.error
        assert await used(app) == {
            "": (1, 9, 0, 0, 1_000_000, 0, 1),
            "large-2025-01-01": (3, 203, 121, 82, 250_000, 2, 0),
            "x": (1, 100, 60, 40, 0, 1, 0),
            "vectors": (1, 7, 7, 0, 0, 1, 0),
        }
        assert (await used(app, "lane")).keys() == {"model", "elsewhere"}


async def test_answers_that_are_nonsense_keep_no_job_from_its_end(
    farm: Farm, server: CountingServer
) -> None:
    server.answers |= {
        "/huge": answer(prompt_tokens=10**14, completion_tokens=10**14, cost=9e14),
        "/dear": answer(cost=9e11),
        "/endless": answer(cost=9e14),
        "/odd": Answer(
            headers=JSON,
            body=b'{"model": "a\\u0000\\ud800\\nb", "usage": {"prompt_tokens": 1}}',
        ),
    }
    app = farm.bare()

    @app.job("call")
    async def call(ctx: JobContext) -> None:
        for _ in range(20):
            for path in ("/huge", "/dear", "/endless"):
                await ctx.http.post(server.url(path), lane="llm")
        await ctx.http.post(server.url("/odd"), lane="llm")

    async with app:
        async with app.running():
            done = await app.wait((await app.enqueue("call")).id, timeout=PATIENCE)
        assert (done.state, done.error) == ("completed", None)
        (lane,) = await app.usage("lane")
    assert (lane.requests, lane.cost, lane.unpriced) == (21, 20 * 10**15, 1)


async def test_request_that_was_refused_or_never_sent_costs_nothing(
    farm: Farm, server: CountingServer
) -> None:
    server.answers["/busy"] = Answer(429, headers={"retry-after": "0"})
    app = farm.bare(lanes={"model": {"min_interval_seconds": 0, "max_parallel": 2}})

    @app.job("call")
    async def call(ctx: JobContext) -> list[str]:
        seen = []
        for url, lane in ((server.url("/busy"), "model"), ("http://127.0.0.1:9/", "gone")):
            try:
                await ctx.http.post(url, lane=lane, amount=500, patience=PATIENCE)
            except PenstockError as error:
                seen.append(type(error).__name__)
        return seen

    async with app:
        async with app.running():
            done = await app.wait((await app.enqueue("call")).id, timeout=PATIENCE)
        assert done.result == ["RateLimited", "Unavailable"]
        assert await app.usage() == []


async def test_visit_is_charged_to_its_tenant(farm: Farm, server: CountingServer) -> None:
    server.answers["/ask"] = answer(prompt_tokens=3)
    app = farm.bare()
    async with service_of(app) as service:
        asking = service.asking("anna", app.queue.now() + PATIENCE)
        await asking.http.post(server.url("/ask"), lane="embedder")
        await until(lambda: app.usage("tenant"), "the charge")
        assert await used(app, "tenant") == {"anna": (1, 3, 3, 0, 0, 1, 0)}
        assert await used(app, "job") == {"": (1, 3, 3, 0, 0, 1, 0)}


async def test_killed_run_is_charged_what_it_has_reserved(farm: Farm) -> None:
    farm.settings["lanes"] = {
        "model": {"tokens_per_interval": 10**6, "interval_seconds": 600.0, "max_parallel": 4}
    }
    with MeteredProvider(Limits(tokens=10**6, seconds=600.0)) as provider:
        payload = requests_of(provider, 1, (1.0, 1.0))[0]
        bound = payload["bound"]["tokens"]
        async with farm.bare() as app:
            slow = {**payload, "seconds": 10 * PATIENCE}
            worker = await farm.start("spending")
            started = await app.enqueue("spend", {"request": slow})
            inside = await app.enqueue("spend_many", {"requests": [slow]})
            await until(lambda: len(provider.log) == 2, "both requests")
            await worker.kill()
            await app.queue.cancel(_both(started.id, inside.id))
            assert await used(app, "job") == {
                job: (1, bound, bound_in(payload), bound_out(payload), 0, 1, 1)
                for job in (started.id, inside.id)
            }
            await farm.start("spending")
            quick = await app.enqueue("spend", {"request": {**payload, "seconds": 0.0}})
            await app.wait(quick.id, timeout=PATIENCE)
            assert (await used(app, "job"))[quick.id][-1] == 0
            (all_of_it,) = await app.usage("tenant")
    assert all_of_it == UsageSum("default", 3, *all_of_it[2:5], 0, 3, 2)


async def test_ledger_is_what_the_provider_counted_but_for_runs_that_were_killed(
    farm: Farm,
) -> None:
    limits = {"tokens_per_interval": 10**9, "interval_seconds": 600.0, "max_parallel": 8}
    farm.settings |= {"lanes": {"model": limits}, "max_workers": 6}
    with MeteredProvider(Limits(tokens=10**9, seconds=600.0)) as provider:
        async with farm.bare() as app:
            asked = [
                {
                    "url": provider.url,
                    "bound": {"tokens": 3000, "input": 1000, "output": 2000},
                    "real": {"tokens": 1001 + 2 * n, "input": n, "output": 1001 + n},
                    "seconds": 0.02,
                    "forgives": False,
                }
                for n in range(40)
            ]
            await app.enqueue_many("spend", [{"request": one} for one in asked[:20]])
            for first in range(20, 40, 5):
                await app.enqueue("spend_many", {"requests": asked[first : first + 5]})
            for kill in (8, 20):
                worker = await farm.start("spending")
                await until(lambda: len(provider.log) >= kill, "some requests")  # noqa: B023
                await worker.kill()
            await farm.start("spending")
            await app.drain(timeout=PATIENCE)
            rows = farm.query("SELECT tokens, reserved FROM charges")
            (all_of_it,) = await app.usage("tenant")
    told = Counter(tokens for tokens, reserved in rows if not reserved)
    bounds = [tokens for tokens, reserved in rows if reserved]
    billed = Counter(one.real["tokens"] for one in provider.log)
    assert not told - billed, "nothing that was not billed"
    untold = (billed - told).total()
    assert untold <= len(bounds) <= 2 * 8, "what is not told is reserved"
    assert set(bounds) == {3000}
    assert (all_of_it.requests, all_of_it.reserved) == (len(rows), len(bounds))
    assert all_of_it.tokens == sum(tokens for tokens, _ in rows)


def _both(*ids: str) -> JobFilter:
    return JobFilter(ids=list(ids))


def bound_in(payload: dict[str, dict[str, int]]) -> int:
    return payload["bound"]["input"]


def bound_out(payload: dict[str, dict[str, int]]) -> int:
    return payload["bound"]["output"]
