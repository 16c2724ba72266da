"""Words shared by the conformance tests of access. Everything goes through the port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database
from penstock.adapters.postgres.store import PostgresStore
from penstock.adapters.sql.access import AccessStore
from penstock.adapters.sql.store import Store
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.store import SqliteStore
from penstock.model.access import Beginning, Begun, InProgress
from tests.support.postgres import borrow_url, give_back

ROUTE = "POST /v1/jobs"
BODY = "fingerprint of a body"

STORES: dict[str, Callable[[str], Store]] = {
    "postgres": lambda url: PostgresStore(Database(parse(url))),
    "sqlite": lambda url: SqliteStore(SqliteFile(url, durable=False), shared=False),
}
"""Every store the suite runs against, by URL."""


def new_place(name: str, folder: Path) -> str:
    """The URL of a store that is not there yet."""
    if name == "sqlite":
        return f"sqlite:///{folder}/store.db"
    return borrow_url("store")


def give_place_back(name: str, url: str) -> None:
    """Take back what `new_place` gave; nothing uses it any more."""
    if name == "postgres":
        give_back("store", url)


@asynccontextmanager
async def access_at(name: str, url: str) -> AsyncIterator[AccessStore]:
    """What another process with the same store would have."""
    store = STORES[name](url)
    await store.open()
    try:
        yield store.access()
    finally:
        await store.close()


async def begin(
    access: AccessStore,
    key: str = "k",
    request: str = "r1",
    *,
    tenant: str = "default",
    route: str = ROUTE,
    body: str = BODY,
    lease: float = 60.0,
) -> Beginning:
    """What it makes is called `of r1`."""
    made = f"of {request}"
    return await access.begin(tenant, route, key, body, request, made, lease_seconds=lease)


def begun(request: str = "r1") -> Begun:
    """To carry out, under the id that this request was begun with."""
    return Begun(f"of {request}")


def going_on(request: str, first: str | None = None) -> InProgress:
    """Carried out by this request, which may have taken over from another."""
    return InProgress(request, f"of {first or request}")


async def finish(
    access: AccessStore,
    key: str = "k",
    request: str = "r1",
    *,
    tenant: str = "default",
    body: bytes = b"made",
) -> bool:
    return await access.finish(tenant, ROUTE, key, request, 202, [("location", "/x")], body)


async def abandon(access: AccessStore, key: str = "k", request: str = "r1") -> bool:
    return await access.abandon("default", ROUTE, key, request)


async def release(access: AccessStore, key: str = "k", request: str = "r1") -> bool:
    return await access.release("default", ROUTE, key, request)
