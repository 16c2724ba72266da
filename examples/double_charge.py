"""Finds a double charge: a worker that dies after the bank has taken the money is run again, and
the bank takes it once more. The remedy is a key by which the bank knows the order."""

import asyncio
from collections import Counter

import httpx2

from penstock import Job, JobContext, Penstock
from penstock.testing import SimulationFailed, simulate

SEEDS = 100
charged: Counter[str] = Counter()
"""The books of the bank: how often each order was paid."""


def bank(request: httpx2.Request) -> httpx2.Response:
    order = request.url.path.removeprefix("/charge/")
    if "Idempotency-Key" not in request.headers or not charged[order]:
        charged[order] += 1
    return httpx2.Response(200, json={"paid": order})


def shop(*, careful: bool) -> Penstock:
    app = Penstock("sqlite:///shop.db", lease_seconds=3.0, retry_base_seconds=0.1)

    @app.job("charge", max_retries=20)
    async def charge(ctx: JobContext, order: str) -> None:
        headers = {"Idempotency-Key": ctx.job.id} if careful else {}
        await ctx.http.post(f"http://bank.example/charge/{order}", headers=headers)
        await asyncio.sleep(0.1)  # writes the receipt: whoever dies here is run again

    return app


async def scenario(app: Penstock) -> None:
    for order in ("book", "lamp", "chair"):
        await app.enqueue("charge", {"order": order})


def once(jobs: list[Job]) -> None:
    for order, times in charged.items():
        assert times == 1, f"{order} was charged {times} times"


def run(app: Penstock) -> None:
    simulate(app, scenario, seeds=SEEDS, check=once, reset=charged.clear, respond=bank)


try:
    run(shop(careful=False))
except SimulationFailed as failure:
    print(failure)
else:
    raise SystemExit("no seed has found it")

run(shop(careful=True))
print(f"\nWith a key, {SEEDS} seeds charge nobody twice.")
