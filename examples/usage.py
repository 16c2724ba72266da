"""Usage: what tenants have spent on which model, with prices, and what an unknown price is."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

PRICES = """
prices:
  large:
    2025-01-01: {input: 3, output: 15}
"""


async def main(folder: str) -> None:
    file = Path(folder) / "penstock.yaml"
    file.write_text(PRICES)
    app = Penstock(f"sqlite:///{folder}/jobs.db", config_file=str(file))

    @app.job("summarise")
    async def summarise(ctx: JobContext, model: str, pages: int) -> None:
        for _ in range(pages):
            # Reserved before it is made: were the process killed now, that is what it would cost.
            async with ctx.lanes.permit("llm", tokens=2000, model=model) as permit:
                permit.used(input_tokens=1000, output_tokens=200)

    async with app.running():
        await app.enqueue("summarise", {"model": "large", "pages": 3}, tenant="acme")
        await app.enqueue("summarise", {"model": "large", "pages": 1}, tenant="bolt")
        await app.enqueue("summarise", {"model": "homemade", "pages": 2}, tenant="bolt")
        await app.drain(timeout=30)
        for by in ("tenant", "model"):
            for one in await app.usage(by):
                unknown = f" and {one.unpriced} of unknown price" if one.unpriced else ""
                print(f"{by} {one.name}: {one.tokens:,} tokens, {one.cost / 1e6:g}{unknown}")
        acme, bolt = await app.usage("tenant")

    assert (acme.name, acme.tokens, acme.cost, acme.unpriced) == ("acme", 3600, 18_000, 0)
    assert (bolt.name, bolt.tokens, bolt.cost, bolt.unpriced) == ("bolt", 3600, 6_000, 2)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
