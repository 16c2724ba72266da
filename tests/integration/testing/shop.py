"""The app that tests of `penstock.testing` test."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from penstock import JobContext, Penstock

app = Penstock(
    "sqlite:///never.db",
    lanes={"narrow": {"max_parallel": 1, "min_interval_seconds": 0}},
    retry_base_seconds=10.0,
)
BANK = "http://bank.example/charges"
here: ContextVar[str] = ContextVar("here", default="nowhere")


@dataclass
class Paid:
    order: str
    parts: tuple[int, int]


@app.job("charge", max_retries=5)
async def charge(ctx: JobContext, order: str, amount: int = 1) -> Paid:
    """Charges once: what the bank has answered is recorded, and it knows the order by a key."""

    async def ask() -> int:
        headers = {"Idempotency-Key": ctx.step_key}
        return (await ctx.http.post(BANK, json={"order": order}, headers=headers)).status_code

    await ctx.step("ask", ask)
    await ctx.step("write", lambda: None)
    return Paid(order, (amount, 0))


@app.job("remind")
async def remind(ctx: JobContext, order: str) -> None:
    await ctx.sleep(3 * 86400)
    await ctx.enqueue("mail", {"to": order})


@app.job("mail")
def mail(ctx: JobContext, to: str) -> str:
    """A plain handler, with a step and a short sleep."""
    ctx.step("render", len, to)
    ctx.sleep(0.01)
    return f"{to}, from {here.get()}"


@app.job("refuse", max_retries=2)
async def refuse(ctx: JobContext, n: int = 0) -> None:
    raise ConnectionError("no")


@app.job("laned", lane="narrow")
async def laned(ctx: JobContext) -> None:
    """One at a time."""


@app.job("family")
async def family(ctx: JobContext) -> list[Any]:
    children = [await ctx.enqueue("mail", {"to": name}) for name in "ab"]
    return [job.result async for job in ctx.finished(children)]
