"""Learnt limits: nobody knows how many requests at a time a service takes, and it changes."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.errors import RateLimited

service = {"takes": 12, "busy": 0, "served": 0, "refused": 0}


async def model() -> None:
    """What would be a call of a provider: it refuses what is too many."""
    if service["busy"] >= service["takes"]:
        service["refused"] += 1
        raise RateLimited("too many at a time")
    service["busy"] += 1
    await asyncio.sleep(0.05)
    service["busy"] -= 1
    service["served"] += 1


async def main(folder: str) -> None:
    app = Penstock(
        f"sqlite:///{folder}/jobs.db",
        max_workers=40,
        lanes={"model": {"max_parallel": "auto", "auto_max": 30, "min_interval_seconds": 0}},
    )

    @app.job("ask", lane="model")
    async def ask(ctx: JobContext) -> None:
        await model()

    async with app.running():
        for takes, count in ((12, 400), (5, 150)):
            service["takes"] = takes
            await app.enqueue_many("ask", [None] * count)
            await app.drain(timeout=120)
            (lane,) = await app.lane_infos()
            assert lane.learnt is not None
            print(f"takes {takes}: learnt {lane.learnt.max_parallel} ({lane.learnt.why})")

    print(f"{service['served']} served, {service['refused']} refused")
    assert service["served"] == 550  # a refusal costs a job nothing but time
    assert service["refused"] < 55


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
