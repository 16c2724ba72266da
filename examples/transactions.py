"""An order and its job are one commit: there is never one without the other."""

import asyncio
import sqlite3
from contextlib import closing
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/shop.db")
    shipped: list[str] = []

    @app.job("ship")
    async def ship(ctx: JobContext, order: str) -> None:
        shipped.append(order)

    async with app.running():
        with closing(sqlite3.connect(f"{folder}/shop.db")) as shop:
            shop.execute("CREATE TABLE orders (number TEXT PRIMARY KEY)")
            with shop:  # commits
                shop.execute("INSERT INTO orders VALUES ('A-1')")
                job = await app.enqueue("ship", {"order": "A-1"}, conn=shop)
            await app.wait(job.id, timeout=30)
            try:
                with shop:  # rolls back
                    await app.enqueue("ship", {"order": "A-1"}, conn=shop)
                    shop.execute("INSERT INTO orders VALUES ('A-1')")
            except sqlite3.IntegrityError as error:
                print("no order, and no job:", error)
            await app.drain(timeout=30)
            orders = [number for (number,) in shop.execute("SELECT number FROM orders")]
    assert shipped == orders == ["A-1"]
    print("ordered and shipped:", *shipped)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
