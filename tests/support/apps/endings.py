"""Handlers that end as they are told."""

from __future__ import annotations

from typing import Any

from penstock import JobContext, Penstock, PermanentError
from tests.support.gate_file import pass_gate
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)

    def end(ending: str) -> str:
        if ending == "failed":
            raise PermanentError("as told")
        return ending

    @app.job("ends")
    async def ends(ctx: JobContext, gate: str, ending: str) -> str:
        side.note(ctx)
        await pass_gate(gate)
        return end(ending)

    @app.job("ends_now")
    async def ends_now(ctx: JobContext, ending: str) -> str:
        return end(ending)

    @app.job("once", max_retries=0)
    async def once(ctx: JobContext, gate: str) -> None:
        side.note(ctx)
        await pass_gate(gate)

    return app
