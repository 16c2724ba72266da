"""The store of an app: one for all that is in it, wherever it is."""

import threading
import time
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.adapters.postgres.database import COMMAND_SECONDS
from penstock.errors import ConfigError, QueueError, QueueUnavailable
from penstock.model.access import hash_of, new_key
from penstock.ports.access import Begun
from tests.support.postgres import new_url, psql
from tests.support.proxy import Proxy
from tests.support.servers import redis_url

ROUTE = "POST /v1/jobs"


async def test_access_registers_no_jobs_and_needs_nothing_of_documents() -> None:
    app = Penstock(new_url())  # and no folder for originals
    access = app.access
    assert list(app.handlers) == []
    async with app:
        assert await access.begin("default", ROUTE, "k", "body", "r1", "j1") == Begun("j1")


async def test_what_is_asked_for_too_late_says_so(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False)
    async with app:
        with pytest.raises(ConfigError, match=r"app\.access before the app is opened"):
            _ = app.access


async def test_what_is_used_outside_the_app_says_so(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/jobs.db", new_url()):
        access = Penstock(url).access
        with pytest.raises(QueueError, match="inside `async with app:`"):
            await access.keys()


async def test_keys_and_documents_beside_redis_share_the_stores_connections(
    tmp_path: Path,
) -> None:
    store = new_url()
    app = Penstock(redis_url("redis"), store=store, blobs=str(tmp_path))
    documents, access = app.documents, app.access
    async with app, psql(store) as mine:
        await documents.documents()
        key, secret = new_key("ci")
        await access.add_key(key, hash_of(secret.reveal()))
        names = await mine.fetch(
            "SELECT DISTINCT application_name FROM pg_stat_activity"
            f" WHERE application_name LIKE '%{mine.schema.strip(chr(34))}'"
        )
        assert [row[0].split()[1] for row in names] == ["store"]


async def test_an_app_can_be_opened_again_with_its_store(tmp_path: Path) -> None:
    for store in (f"sqlite:///{tmp_path}/store.db", new_url()):
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", store=store, durable=False)
        access = app.access
        key, secret = new_key("ci")
        async with app:
            await access.add_key(key, hash_of(secret.reveal()))
        async with app:
            assert [one.id for one in await access.keys()] == [key.id]


async def test_an_app_whose_store_is_away_leaves_nothing_open_and_opens_once_it_is_back(
    tmp_path: Path,
) -> None:
    with Proxy(new_url()) as proxy:
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", store=proxy.url, durable=False)
        access, before = app.access, threading.enumerate()
        proxy.leave()
        with pytest.raises(QueueUnavailable, match="cannot reach"):
            await app.__aenter__()
        new = [one.name for one in threading.enumerate() if one not in before]
        assert not [name for name in new if name.startswith("penstock")]
        proxy.come_back()
        async with app:
            assert await access.keys() == []


async def test_a_store_that_does_not_answer_is_given_up_on(tmp_path: Path) -> None:
    with Proxy(new_url()) as proxy:
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", store=proxy.url, durable=False)
        access = app.access
        async with app:
            await access.keys()
            proxy.silence()
            begun = time.monotonic()
            with pytest.raises(QueueUnavailable):
                await access.begin("default", ROUTE, "k", "body", "r1", "j1")
            assert time.monotonic() - begun < 10 * COMMAND_SECONDS
            proxy.resume()
            assert await access.begin("default", ROUTE, "k", "body", "r2", "j2") == Begun("j2")
