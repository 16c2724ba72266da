"""A page of the web in a job: robots.txt is asked, the main text kept, and fenced for a model."""

import asyncio
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from penstock import JobContext, Penstock
from penstock.errors import RobotsRefused
from penstock.research.page import TIMEOUT_SECONDS, fetch_page
from penstock.research.robots import Robots
from penstock.text.untrusted import fenced

STORY = "The sluice opens at dawn, and the keeper writes the time into a book. " * 5
PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /private\n",
    "/story": "<html><title>Sluices</title><body><nav><a href=/>Home</a></nav>"
    f"<article><h1>Sluices</h1><p>{STORY}</p></article><footer>Imprint</footer></body></html>",
}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A web server, in this process."""
    path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    body = PAGES.get(path, "").encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    writer.close()


async def main(folder: str) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    here = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    app = Penstock(f"sqlite:///{folder}/jobs.db", fetch_allow=here, contact="me@example.org")
    documents, robots = app.use("documents").documents, Robots(app.lanes)

    @app.job("page", lane=lambda payload: payload["lane"], timeout=TIMEOUT_SECONDS)
    async def page(ctx: JobContext, url: str, lane: str) -> str:
        document = await fetch_page(
            ctx,
            documents,
            url,
            tenant=ctx.job.tenant,
            collection="web",
            fresh_seconds=3600,
            robots=robots,
        )
        return document.ref.id

    async with app.running():
        lane = await documents.lane_of(urlsplit(f"http://{here}").hostname or "")
        job = await app.enqueue("page", {"url": f"http://{here}/story", "lane": lane})
        done = await app.wait(job.id, timeout=60)
        document = await documents.wait(done.result, collection="web", timeout=60)
        print(f"{document.title}: {document.reading['text']} text, from {document.source}")
        assert document.reading["text"] == "main"

        chunks = await documents.chunks(document.ref.id, collection="web")
        print(fenced(chunks[0].text, document.source))
        assert "Imprint" not in chunks[0].text

        job = await app.enqueue("page", {"url": f"http://{here}/private/diary", "lane": lane})
        refused = await app.wait(job.id, timeout=60)
        assert refused.error is not None
        print(f"{refused.error.type}: {refused.error.message}")
        assert refused.error.type == RobotsRefused.__name__
    server.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
