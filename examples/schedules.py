"""Schedules that are made, changed and paused while everything runs."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


def build(folder: str, sent: asyncio.Queue[tuple[str, float | None]]) -> Penstock:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("mail")
    async def mail(ctx: JobContext, to: str) -> None:
        await sent.put((to, ctx.tick))

    return app


async def main(folder: str) -> None:
    sent: asyncio.Queue[tuple[str, float | None]] = asyncio.Queue()
    one, other = build(folder, sent), build(folder, sent)  # as good as two processes
    async with one.running(), other.running(), asyncio.timeout(60):
        await one.schedules.set("often", "mail", {"to": "Ada"}, every=1)
        await one.schedules.set(
            "daily", "mail", {"to": "Bob"}, cron="0 7 * * *", timezone="Asia/Tokyo"
        )
        mails = [await sent.get() for _ in range(2)]
        await one.schedules.remove("often")
        await one.schedules.pause("daily")
        await one.schedules.run_now("daily")
        while mails[-1][0] != "Bob":
            mails.append(await sent.get())
        shown = await one.schedules.list()
    print(*mails, sep="\n")
    assert len(set(mails)) == len(mails), "each tick is one job"
    assert mails[-1] == ("Bob", None), "no tick"
    assert [(schedule.name, schedule.paused) for schedule in shown] == [("daily", True)]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
