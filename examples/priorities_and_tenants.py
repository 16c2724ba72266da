"""High before medium before low; inside a priority, tenants take turns."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

ran: list[str] = []


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", max_workers=1)  # one at a time: order shows

    @app.job("mail")
    async def mail(ctx: JobContext, to: str) -> None:
        ran.append(to)

    async with app:
        # One tenant fills the queue, another comes with two jobs, then something urgent.
        await app.enqueue_many("mail", [{"to": f"big-{n}"} for n in range(6)], tenant="big")
        await app.enqueue_many("mail", [{"to": f"small-{n}"} for n in range(2)], tenant="small")
        await app.enqueue("mail", {"to": "whenever"}, priority="low")
        await app.enqueue("mail", {"to": "now"}, priority="high")

        async with app.running():
            await app.drain(timeout=30)

    print(ran)
    assert ran[0] == "now"
    assert ran[1:5] == ["big-0", "small-0", "big-1", "small-1"]  # turn by turn
    assert ran[5:] == ["big-2", "big-3", "big-4", "big-5", "whenever"]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
