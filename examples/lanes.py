"""Lanes: starts kept apart, and not too many at a time, however many jobs and processes."""

import asyncio
import time
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

LANES: dict[str, dict[str, float]] = {
    # At most 10 starts in any second: they come 0.1 s apart, not in bursts.
    "catalogue": {"requests_per_interval": 10, "interval_seconds": 1.0, "max_parallel": 5},
    # As often as you like, but two at a time.
    "printer": {"min_interval_seconds": 0, "max_parallel": 2},
}

starts: list[float] = []
printing = most_printing = 0


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", lanes=LANES)

    @app.job("look_up", lane="catalogue")
    async def look_up(ctx: JobContext, book: int) -> None:
        starts.append(time.monotonic())
        await asyncio.sleep(0.05)

    @app.job("print", lane="printer")
    async def print_page(ctx: JobContext, page: int) -> None:
        global printing, most_printing
        printing += 1
        most_printing = max(most_printing, printing)
        await asyncio.sleep(0.1)
        printing -= 1

    async with app.running():  # ten workers; the lanes decide how many of them are used
        begun = time.monotonic()
        await app.enqueue_many("look_up", [{"book": n} for n in range(25)])
        pages = await app.enqueue_many("print", [{"page": n} for n in range(20)])
        await asyncio.sleep(0.5)
        for lane in await app.lane_infos():
            print(f"{lane.name}: {lane.in_flight} of {lane.max_parallel}, {lane.waiting} waiting")
        print("the last page waits for", (await app.get(pages[-1].id)).waiting_for)
        await app.drain(timeout=30)

    print(f"25 books in {max(starts) - begun:.1f} s, at most {most_printing} pages at a time")
    for nth, start in enumerate(starts):
        assert start - begun > 0.099 * nth, "none before its turn"
    assert most_printing == 2


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
