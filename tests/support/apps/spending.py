"""Handlers that ask a provider which counts tokens: with permits, and with the start of a job."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from penstock import JobContext, Penstock
from tests.support.side_effects import Side

LANE = "model"


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    def amount(payload: dict[str, Any]) -> dict[str, int]:
        bound = payload["bound"]
        return {"input_tokens": bound["input"], "output_tokens": bound["output"]}

    client = httpx2.AsyncClient(verify=False, trust_env=False, timeout=60)

    async def ask(start: float, payload: dict[str, Any]) -> dict[str, int]:
        answer = await client.post(payload["url"], json={**payload, "start": start})
        usage = answer.json()["usage"]
        return {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
        }

    @app.job("spend_many")
    async def spend_many(ctx: JobContext, requests: list[dict[str, Any]]) -> int:
        """All at once, as many as there are permits for."""

        async def one(payload: dict[str, Any]) -> None:
            async with ctx.lanes.permit(LANE, **amount(payload)) as permit:
                permit.used(**await ask(permit.start_at, payload))

        await asyncio.gather(*map(one, requests))
        return len(requests)

    @app.job("spend", lane=LANE, amount=amount)
    async def spend(
        ctx: JobContext, url: str, bound: dict[str, int], real: dict[str, int], seconds: float
    ) -> None:
        payload = {"url": url, "bound": bound, "real": real, "seconds": seconds}
        ctx.lanes.used(**await ask(ctx._run.lease.start_at, payload))

    return app
