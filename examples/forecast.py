"""When will a backlog be done, what does it cost, what holds it up, and what if the limits were
others? The rules of lanes are run over it in virtual time; nothing is changed."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.forecast.words import in_words

LANES = {"embedder": {"min_interval_seconds": 0.0, "max_parallel": 4, "cost_per_day": 50.0}}


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", lanes=LANES)

    @app.job("embed", lane="embedder", amount={"cost": 0.000025})
    async def embed(ctx: JobContext, chunk: int) -> int:
        await asyncio.sleep(0.05)
        return chunk

    async with app.running():  # some have run: that is how it is known how long they take
        await app.enqueue_many("embed", [{"chunk": n} for n in range(20)])
        await app.drain(timeout=60)

    async with app:
        await app.enqueue_many("embed", [{"chunk": n} for n in range(10_000)])
        forecast = await app.forecast(processes=2)
        for line in in_words(forecast):
            print(line)
        assert forecast.jobs == 10_000
        assert forecast.done_at is not None
        assert forecast.binding is not None
        assert (forecast.binding.lane, forecast.binding.held_by) == ("embedder", "slots")
        assert forecast.cost is not None
        assert abs(forecast.cost - 0.25) < 0.01

        faster = await app.forecast(processes=2, changes={"embedder": {"max_parallel": 8}})
        assert faster.done_at is not None
        seconds = forecast.done_at - forecast.at, faster.done_at - faster.at
        print(f"{seconds[0]:.0f} s with four slots, {seconds[1]:.0f} s with eight")
        assert 1.7 < seconds[0] / seconds[1] < 2.3

        await app.control_lane("embedder", "pause")
        paused = await app.forecast(processes=2)
        print(in_words(paused)[-1])
        assert (paused.done_at, paused.stays) == (None, 10_000)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
