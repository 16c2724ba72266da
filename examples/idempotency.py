"""The same key is the same job, however often and by however many it is enqueued."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.errors import KeyConflict

charged: list[str] = []


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("charge", max_retries=0)
    async def charge(ctx: JobContext, order: str, cents: int) -> str:
        if cents < 0:
            raise ValueError("cannot charge less than nothing")
        charged.append(order)
        return f"charged {cents}"

    async with app.running():
        # A hundred callers at once; keys are per tenant and kind.
        payload = {"order": "A-1", "cents": 500}
        calls = [app.enqueue("charge", payload, key="A-1") for _ in range(100)]
        jobs = await asyncio.gather(*calls)
        assert len({job.id for job in jobs}) == 1

        # After completion too: the key holds for as long as the job is kept.
        done = await app.wait(jobs[0].id, timeout=30)
        again = await app.enqueue("charge", payload, key="A-1")
        assert (again.id, again.result) == (done.id, "charged 500")
        assert charged == ["A-1"]
        print("100 calls and one later:", charged, again.result)

        try:
            await app.enqueue("charge", {"order": "A-1", "cents": 999}, key="A-1")
            raise AssertionError("the key was given away")
        except KeyConflict as conflict:
            print("refused:", conflict)

        # A key whose job failed (or was cancelled) can be given to a new job.
        bad = await app.enqueue("charge", {"order": "A-2", "cents": -1}, key="A-2")
        await app.wait(bad.id, timeout=30)
        good = {"order": "A-2", "cents": 1}
        new = await app.enqueue("charge", good, key="A-2", replace="finished")
        assert (await app.wait(new.id, timeout=30)).result == "charged 1"


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
