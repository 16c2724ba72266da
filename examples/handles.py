"""Jobs enqueued by their handler's own signature: type checkers know arguments and results."""

import asyncio
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from pydantic import BaseModel

from penstock import JobContext, Penstock


@dataclass
class Size:
    width: int
    height: int


class Picture(BaseModel):
    url: str
    size: Size


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job(timeout=30)
    async def resize(ctx: JobContext, picture: Picture, width: int) -> Picture:
        height = picture.size.height * width // picture.size.width
        return Picture(url=picture.url, size=Size(width, height))

    @app.job
    async def gallery(ctx: JobContext, picture: Picture, widths: list[int]) -> list[Picture]:
        child = resize.with_options(parent=ctx, priority="high")
        refs = await child.enqueue_many([child.payload(picture, width) for width in widths])
        async for job in ctx.finished(refs):
            ctx.log("%s has ended", job.id)
        return [await ref.result() for ref in refs]

    cat = Picture(url="cat.jpg", size=Size(800, 600))
    async with app.running():
        ref = await gallery.enqueue(cat, widths=[400, 80])
        pictures = await ref.result(timeout=30)  # list[Picture]
        print(*[picture.size for picture in pictures])
        assert [picture.size for picture in pictures] == [Size(400, 300), Size(80, 60)]

        once = resize.with_options(key="cat:80")  # the same key is the same job
        assert await once.enqueue(cat, width=80) == await once.enqueue(cat, width=80)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
