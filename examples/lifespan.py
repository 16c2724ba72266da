"""What every job of a process needs is opened once, before the first, and closed after the last."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


@dataclass
class Resources:
    catalogue: sqlite3.Connection


@asynccontextmanager
async def lifespan(app: Penstock) -> AsyncIterator[Resources]:
    catalogue = sqlite3.connect(":memory:")
    catalogue.execute("CREATE TABLE prices AS SELECT 'gasket' AS part, 240 AS cents")
    try:
        yield Resources(catalogue)  # what is yielded is `ctx.state`
    finally:
        catalogue.close()


@dataclass
class Quote:
    part: str
    cents: int


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", lifespan=lifespan)

    @app.job  # its kind is the function's name
    async def quote(ctx: JobContext[Resources], part: str) -> Quote:
        row = ctx.state.catalogue.execute("SELECT cents FROM prices WHERE part = ?", (part,))
        return Quote(part, row.fetchone()[0])

    async with app.running():  # `penstock worker MODULE:APP` enters it just so
        job = await app.enqueue("quote", {"part": "gasket"})
        result = await app.result(job.id, timeout=30)  # raises if the job failed
        print(result)
        assert result == {"part": "gasket", "cents": 240}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
