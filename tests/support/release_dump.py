"""A small queue of each kind as a release has left it, with some rows: later versions upgrade it.

`python -m tests.support.release_dump VERSION` writes the dumps of the code as it is now into
`tests/data/releases/VERSION`. It is done once a release; the dumps are never changed.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import redis

from penstock import JobContext, Penstock, PermanentError
from tests.support.database_servers import PostgresServer, redis_url

RELEASES = Path(__file__).parents[1] / "data" / "releases"
NAMESPACE = "release"
DATABASES = ("sqlite", "postgres")
"""Queues that store documents and API keys, too."""
LANES = {"api": {"min_interval_seconds": 0.0, "max_parallel": 2}}
TEXT = "The mill at Ashford grinds oats. Its wheel was built in 1847."


def release_app(url: str, store: str, folder: Path) -> Penstock:
    """The app whose rows are in the dumps, with the handlers that they need."""
    app = Penstock(url, lanes=LANES, blobs=str(folder / "blobs"))
    if store in DATABASES:
        app.use("documents", "keys")

    @app.job("greet", lane="api")
    async def greet(ctx: JobContext, name: str) -> str:
        ctx.log("greeting %s", name)
        return f"hello {name}"

    @app.job("break")
    async def fail(ctx: JobContext) -> None:
        raise PermanentError("it never works")

    # The traceback is stored: it shall not tell on which machine the dump was made.
    code = fail.function.__code__.replace(co_filename=f"tests/support/{Path(__file__).name}")
    fail.function.__code__ = code
    return app


async def _fill(app: Penstock, store: str) -> None:
    async with app, app.running():
        done = await app.enqueue("greet", {"name": "Ada"}, key="first", log="letters")
        dead = await app.enqueue("break")
        for job in (done, dead):
            await app.wait(job.id, timeout=60)
        if store in DATABASES:
            await app.documents.add(TEXT, id="mill", metadata={"year": 1847})
            await app.documents.wait("mill", timeout=60)
            await app.keys.create("reader", scopes=["read"])
    async with app:
        await app.enqueue("greet", {"name": "Bob"}, key="waiting", priority="high")
        await app.enqueue("greet", {"name": "Eve"}, delay=10 * 365 * 86400.0)


def _write(folder: Path) -> None:
    with TemporaryDirectory() as scratch:
        queue, plain = Path(scratch, "queue.db"), Path(scratch, "plain.db")
        asyncio.run(_fill(release_app(f"sqlite:///{queue}", "sqlite", Path(scratch)), "sqlite"))
        with closing(sqlite3.connect(queue)) as connection:
            connection.execute("VACUUM INTO ?", (str(plain),))
        (folder / "sqlite.db.gz").write_bytes(gzip.compress(plain.read_bytes(), mtime=0))

    server = PostgresServer().start()
    url = f"{server.url}?namespace={NAMESPACE}"
    asyncio.run(_fill(release_app(url, "postgres", server.folder), "postgres"))
    dump = [server.program("pg_dump"), "--inserts", "--no-owner", "--dbname", server.url]
    done = subprocess.run(dump, check=True, capture_output=True, text=True, cwd=server.folder)
    # Lines for psql, and for a superuser: nothing of the namespace.
    lines = [one for one in done.stdout.splitlines() if not one.startswith(("\\", "--"))]
    (folder / "postgres.sql").write_text("\n".join(filter(None, lines)) + "\n")

    url = f"{redis_url('redis')}?namespace={NAMESPACE}"
    asyncio.run(_fill(release_app(url, "redis", folder), "redis"))
    with redis.Redis.from_url(redis_url("redis")) as client:
        keys = {str(key, "utf-8"): client.dump(key) for key in sorted(client.scan_iter())}
    held = {key: str(base64.b64encode(dumped), "ascii") for key, dumped in keys.items()}
    (folder / "redis.json").write_text(json.dumps(held, indent=1) + "\n")


async def restore(release: Path, store: str, folder: Path) -> str:
    """Lay a dump down in a server or file of its own; the URL of its queue."""
    if store == "sqlite":
        dumped = (release / "sqlite.db.gz").read_bytes()
        (folder / "queue.db").write_bytes(gzip.decompress(dumped))
        return f"sqlite:///{folder / 'queue.db'}"
    if store == "postgres":
        server = PostgresServer().start()
        mine = await asyncpg.connect(server.url)
        await mine.execute((release / "postgres.sql").read_text())
        await mine.close()
        return f"{server.url}?namespace={NAMESPACE}"
    held = json.loads((release / "redis.json").read_text())
    with redis.Redis.from_url(redis_url("redis")) as client:
        for key, text in held.items():
            client.restore(key, 0, base64.b64decode(text), replace=True)
    return f"{redis_url('redis')}?namespace={NAMESPACE}"


if __name__ == "__main__":
    made = RELEASES / sys.argv[1]
    made.mkdir(parents=True)
    _write(made)
