"""A job enqueues others: no second set when it is run again, and they are cancelled with it."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", retry_base_seconds=0.05)
    shown = asyncio.Event()

    @app.job("album")
    async def album(ctx: JobContext, pictures: int) -> list[str]:
        children = [await ctx.enqueue("thumbnail", {"n": n}) for n in range(pictures)]
        if ctx.attempt == 1:
            raise ConnectionError("failed after its children were stored")
        return [child.id for child in children]

    @app.job("slideshow")
    async def slideshow(ctx: JobContext) -> None:
        made = [await ctx.enqueue("thumbnail", {"n": n}, delay=60) for n in range(3)]
        made.append(await ctx.enqueue("thumbnail", {"n": 99}, delay=60, detached=True))
        shown.set()
        async for _ in ctx.finished(made):
            pass

    @app.job("thumbnail")
    async def thumbnail(ctx: JobContext, n: int) -> str | None:
        return ctx.job.parent_id

    async with app.running():
        parent = await app.enqueue("album", {"pictures": 5}, priority="high", tenant="anna")
        await app.drain(timeout=30)

        done = await app.get(parent.id)
        children = await app.jobs(kind="thumbnail")
        print(f"{done.attempts} runs of the parent, {len(children)} children")
        assert done.attempts == 2
        assert sorted(done.result) == sorted(child.id for child in children)
        # Tenant, priority and log are the parent's unless given.
        assert {(c.parent_id, c.tenant) for c in children} == {(parent.id, "anna")}

        parent = await app.enqueue("slideshow")
        await shown.wait()
        await app.cancel(parent.id)
        children = await app.jobs(parent_id=parent.id)
        print([(child.payload["n"], str(child.state)) for child in children])
        assert {c.payload["n"] for c in children if c.state == "queued"} == {99}  # detached
        assert sum(child.state == "cancelled" for child in children) == 3


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
