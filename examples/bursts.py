"""Of a burst of enqueues, one job: the latest counts (debounce), or the first (unique_for)."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.errors import ValidationError

indexed: list[str] = []


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("index")
    async def index(ctx: JobContext, user: int, text: str) -> str:
        indexed.append(text)
        return text

    @app.job("digest")
    async def digest(ctx: JobContext, user: int) -> str:
        # Also from a job: it is nobody's child, as the next job may enqueue it, too.
        await index.with_options(parent=ctx, debounce=0.1, debounce_key=f"user:{user}").enqueue(
            user=user, text="after the digest"
        )
        return f"digest for {user}"

    # Somebody types. Each key stroke enqueues; one job runs, with the last text.
    typed = index.with_options(debounce=0.3, debounce_key="user:7", max_wait=60)
    async with app:
        refs = [await typed.enqueue(user=7, text=text) for text in ("c", "ca", "cat")]
        other = await index.with_options(debounce=0.3, debounce_key="user:8").enqueue(8, "dog")
        assert {ref.id for ref in refs} == {refs[0].id} != {other.id}
        waiting = await app.get(refs[0].id)
        assert (waiting.payload, waiting.debounce_key) == ({"user": 7, "text": "cat"}, "user:7")
        print("waits for", waiting.waiting_for)

    async with app.running():
        assert await refs[0].result(timeout=60) == "cat"
        await other.result(timeout=60)
        assert sorted(indexed) == ["cat", "dog"]

        # The key was free when the job started.
        again = await typed.enqueue(user=7, text="cats")
        assert again.id != refs[0].id
        assert await again.result(timeout=60) == "cats"

        # Who asks for the same within a minute gets the first one's job, finished or not.
        once = digest.with_options(unique_for=60)
        first = await once.enqueue(user=7)
        assert await first.result(timeout=60) == "digest for 7"
        same = await once.enqueue(user=7)
        assert same.id == first.id
        assert (await once.enqueue(user=8)).id != first.id
        jobs = await app.enqueue_many("digest", [{"user": 7}] * 3, unique_for=60)
        assert {job.id for job in jobs} == {first.id}

    try:
        await app.enqueue("index", {"user": 7, "text": "x"}, debounce=0.3)
        raise AssertionError("it was not told what is one burst")
    except ValidationError as error:
        print("refused:", error)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
