"""Grounds for one fault at a time: what holds the queue can be filled, and its jobs be spoilt."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import redis

from tests.support.database_servers import PostgresServer, PrivateServer, RedisServer
from tests.support.disk import fill, small_disk
from tests.support.tcp_proxy import Proxy

MEGABYTES = 16


class SmallGround:
    """A queue in a file, on a small disk. There is no server to be cruel to."""

    server: PrivateServer
    proxy: Proxy

    def __init__(self, url: str, disk: Path, *, fillable: bool) -> None:
        self.url = url
        self.disk = disk
        self.fillable = fillable
        """Whether it is small indeed: mounting a disk is not permitted everywhere."""

    async def fill(self) -> None:
        """Leave no room for anything more."""
        await asyncio.to_thread(fill, self.disk)

    async def free(self) -> None:
        (self.disk / "ballast").unlink()

    async def spoil(self, mark: str) -> None:
        """Turn the payload of every job that contains `mark` into something that is no JSON."""
        with closing(sqlite3.connect(self.disk / "jobs.db", timeout=60)) as file, file:
            file.execute("UPDATE jobs SET payload = '{' WHERE instr(payload, ?)", (mark,))


class PostgresGround(SmallGround):
    """The queue's tables are on the small disk; the server's log of writes is not."""

    async def spoil(self, mark: str) -> None:
        connection = await asyncpg.connect(_jobs(self.server.url))
        statement = "UPDATE penstock.jobs SET payload = '{' WHERE position($1 IN payload) > 0"
        await connection.execute(statement, mark)
        await connection.close()


class RedisGround(SmallGround):
    """The server's memory is what can be full."""

    async def fill(self) -> None:
        self._allow(1)

    async def free(self) -> None:
        self._allow(0)

    def _allow(self, memory: int) -> None:
        with redis.Redis.from_url(self.server.url) as server:
            server.config_set("maxmemory", memory)

    async def spoil(self, mark: str) -> None:
        with redis.Redis.from_url(self.server.url, decode_responses=True) as server:
            for key in server.keys("*:payloads"):
                for number, payload in server.hgetall(key).items():
                    if mark in payload:
                        server.hset(key, number, "{")


@contextmanager
def small_ground(queue: str, folder: Path) -> Iterator[SmallGround]:
    match queue:
        case "sqlite":
            disk = folder / "disk"
            with small_disk(disk, MEGABYTES) as fillable:
                yield SmallGround(f"sqlite:///{disk / 'jobs.db'}", disk, fillable=fillable)
        case "postgres":
            with _postgres() as ground:
                yield ground
        case _:
            # A crash of the server must lose nothing: so every write is on the disk.
            server = RedisServer(queue, durable=True).start()
            try:
                with Proxy(server.url) as proxy:
                    ground = RedisGround(proxy.url, folder, fillable=True)
                    ground.server, ground.proxy = server, proxy
                    yield ground
            finally:
                server.remove()


@contextmanager
def _postgres() -> Iterator[SmallGround]:
    server = PostgresServer(durable=True)
    disk = server.folder / "small"
    with small_disk(disk, 3 * MEGABYTES) as fillable:
        server.own(disk)
        server.start()
        try:
            asyncio.run(_create(server.url, disk))
            with Proxy(server.url) as proxy:
                ground = PostgresGround(_jobs(proxy.url), disk, fillable=fillable)
                ground.server, ground.proxy = server, proxy
                yield ground
        finally:
            server.kill()
    server.remove()


async def _create(url: str, disk: Path) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
    await connection.execute("CREATE DATABASE jobs TABLESPACE small")
    await connection.close()


def _jobs(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path="/jobs"))
