"""A service goes away for six seconds, with 100 jobs and more waiting for it.

The jobs of its lane wait and lose nothing; a few tries, further and further apart, look whether it
is back; a probe notices its return; jobs of another kind never notice anything.

    python examples/outage.py                 runs, and checks what it promises
    python examples/outage.py --svg FILE      and draws what happened

The breaker's times are a tenth of the real ones, so that it takes 13 seconds and not two minutes.
"""

import argparse
import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock import Job, JobContext, Penstock

DOWN, UP, END = 3.0, 9.0, 13.0
"""When the service goes away, when it is back, and how long the picture is; in seconds."""
OTHERS = 100
"""Jobs per second that have nothing to do with the service."""
LANES = {
    "embedder": {
        "min_interval_seconds": 0.025,
        "max_parallel": 4,
        "breaker_first_seconds": 0.1,
        "breaker_cap_seconds": 30.0,
        "probe_seconds": 0.3,
    }
}


class Service:
    """Answers every request on a port of this machine, while it is there."""

    def __init__(self) -> None:
        self.port = 0
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/embed"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):  # requests without a body, one by one
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nvector")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the other side has ended the connection, or we have
        finally:
            self._connections.discard(writer)
            writer.close()

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self._connections):
            writer.transport.abort()
        await self._server.wait_closed()


class Record:
    """What happened when, in seconds since the start."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.tries: list[float] = []
        self.embedded: list[float] = []
        self.resized: list[float] = []

    def now(self) -> float:
        return time.monotonic() - self.began

    async def until(self, at: float) -> None:
        await asyncio.sleep(at - self.now())


def build(folder: str, service: Service, record: Record) -> Penstock:
    app = Penstock(f"sqlite:///{folder}/jobs.db", durable=False, upkeep_seconds=0.05, lanes=LANES)

    @app.job("embed", lane="embedder", max_retries=2)
    async def embed(ctx: JobContext, chunk: int) -> str:
        record.tries.append(record.now())
        answer = await ctx.http.post(service.url)
        record.embedded.append(record.now())
        return answer.text

    @app.job("resize")
    async def resize(ctx: JobContext, picture: int) -> None:
        await asyncio.sleep(0.02)
        record.resized.append(record.now())

    return app


async def keep_resizing(app: Penstock, record: Record) -> None:
    """Five pictures at a time, whatever else happens."""
    for n in range(int(END * OTHERS / 5)):
        await record.until(5 * n / OTHERS)
        await app.enqueue_many("resize", [{"picture": 5 * n + i} for i in range(5)])


async def run(folder: str) -> tuple[Record, list[Job]]:
    service, record = Service(), Record()
    await service.start()
    app = build(folder, service, record)
    async with app.running():
        record.began = time.monotonic()
        others = asyncio.create_task(keep_resizing(app, record))
        jobs = await app.enqueue_many("embed", [{"chunk": n} for n in range(220)])
        await record.until(DOWN)
        await service.stop()
        await record.until(UP - 1)
        for lane in await app.lane_infos():
            print(f"lane {lane.name}: breaker {lane.breaker}, {lane.waiting} waiting")
            assert (lane.breaker, lane.in_flight) == ("open", 0)
            assert lane.waiting >= 100
        first = (await app.jobs(kind="embed", states=["queued"], limit=1))[0]
        print(f"a job waits for {first.waiting_for}")
        await record.until(UP)
        await service.start()
        await others
        await app.drain(timeout=30)
    async with app:
        jobs = [await app.get(job.id) for job in jobs]
    await service.stop()
    return record, jobs


def check(record: Record, jobs: list[Job]) -> None:
    tries = [at for at in record.tries if DOWN < at < UP]
    resumed = min(at for at in record.embedded if at > UP) - UP
    print(f"{len(tries)} tries in {UP - DOWN:g} s of outage, at", *(f"{at:.1f}" for at in tries))
    print(f"resumed {resumed:.2f} s after the return, all done at {record.embedded[-1]:.1f} s")
    runs = {job.attempts for job in jobs}
    print(f"{len(jobs)} jobs completed, runs spent on each: {runs}")
    assert all(job.state == "completed" for job in jobs)
    assert runs == {1}, "an outage spends no attempts"
    assert len(tries) <= 15, "tries get rarer"
    assert resumed < 3, "the probe notices the return"
    rates = [
        sum(begin <= at < begin + 2 for at in record.resized) / 2 for begin in (1, DOWN + 1, UP - 2)
    ]
    print("other jobs per second before, at first, at last:", *(f"{rate:.0f}" for rate in rates))
    assert min(rates[1:]) > 0.5 * OTHERS, "nobody else notices"


WIDTH, LEFT, STEP = 900, 70, 0.25


def picture(record: Record) -> str:
    """Two rows of bars (jobs done per 250 ms) and one of dots (tries), over the same seconds."""

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * at / END

    def bars(times: list[float], bottom: float, label: str, colour: str) -> list[str]:
        counts = [0] * int(END / STEP)
        for at in times:
            if at < END:
                counts[int(at / STEP)] += 1
        most = max(counts)
        parts = [f'<text x="{LEFT - 8}" y="{bottom - 76}" class="r">{most / STEP:.0f}/s</text>']
        parts.append(f'<text x="{LEFT}" y="{bottom - 96}" class="h">{label}</text>')
        for n, count in enumerate(counts):
            high, wide = 80 * count / most, x(STEP) - x(0) - 1
            parts.append(
                f'<rect x="{x(n * STEP):.1f}" y="{bottom - high:.1f}" width="{wide:.1f}" '
                f'height="{high:.1f}" fill="{colour}"/>'
            )
        return [*parts, f'<path d="M{LEFT} {bottom}H{WIDTH - 20}" stroke="#888"/>']

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 400" role="img">',
        "<title>An outage of six seconds, and the recovery</title>",
        "<style>text{font:13px sans-serif;fill:#333}.h{font-weight:bold}.r{text-anchor:end}"
        ".m{text-anchor:middle}</style>",
        f'<rect width="{WIDTH}" height="400" fill="#fff"/>',
        f'<rect x="{x(DOWN):.1f}" y="20" width="{x(UP) - x(DOWN):.1f}" height="350" '
        'fill="#fbe3e0"/>',
        f'<text x="{x((DOWN + UP) / 2):.1f}" y="15" class="m">the service is away</text>',
        *bars(record.embedded, 150, "embed: jobs done in the lane of the service", "#2b7bba"),
        '<text x="70" y="184" class="h">embed: tries while the service is away</text>',
        *(
            f'<circle cx="{x(at):.1f}" cy="206" r="4" fill="#c0392b"/>'
            for at in record.tries
            if DOWN < at < UP
        ),
        f'<path d="M{LEFT} 220H{WIDTH - 20}" stroke="#888"/>',
        *bars(record.resized, 350, "resize: jobs done of a kind without a lane", "#5a9e5a"),
        *(
            f'<text x="{x(second):.1f}" y="388" class="m">{second} s</text>'
            for second in range(int(END) + 1)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="An outage and its end.")
    options.add_argument("--svg", metavar="FILE", help="draw what happened")
    chosen = options.parse_args()
    with TemporaryDirectory() as folder:
        record, jobs = asyncio.run(run(folder))
    check(record, jobs)
    if chosen.svg:
        Path(chosen.svg).write_text(picture(record))
