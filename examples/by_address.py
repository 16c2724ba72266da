"""Documents by address: accepted at once, fetched by a job, and only from where it is allowed."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import Penstock
from penstock.errors import AddressRefused

PAGE = b"<title>Sluices</title><p>The sluice opens at dawn. Ask kim@example.com.</p>"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A web server, in this process."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(PAGE), PAGE))
    writer.close()


async def main(folder: str) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    here = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    app = Penstock(f"sqlite:///{folder}/jobs.db", fetch_allow=here)
    documents = app.use("documents").documents

    async with app.running():
        accepted = await documents.add_url(f"http://{here}/sluices")
        print(f"accepted: {accepted.state}, phase {accepted.phase}")
        assert accepted.phase == "fetch"

        document = await documents.wait(accepted.ref.id, timeout=60)
        print(f"{document.state}: {document.title}, masked: {dict(document.masked)}")
        assert (document.title, document.masked) == ("Sluices", {"email": 1})

        try:
            await documents.add_url("http://169.254.169.254/latest/meta-data/")
        except AddressRefused as error:
            print(f"refused: {error}")
        else:
            raise AssertionError("an address that nobody allowed was accepted")
    server.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
