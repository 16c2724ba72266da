"""The store of an app: one for all that is in it, wherever it is."""

import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from penstock import Penstock
from penstock.adapters.postgres.database import COMMAND_SECONDS
from penstock.errors import ConfigError, QueueError, QueueUnavailable
from penstock.model.access import Begun
from penstock.wiring.services import Service
from tests.support.database_servers import redis_url
from tests.support.postgres import new_url, psql
from tests.support.tcp_proxy import Proxy

ROUTE = "POST /v1/jobs"


async def test_access_registers_no_jobs_and_needs_nothing_of_documents() -> None:
    app = Penstock(new_url())  # and no folder for originals
    access = app.use("keys").keys.store
    assert list(app.handlers) == []
    async with app:
        assert await access.begin("default", ROUTE, "k", "body", "r1", "j1") == Begun("j1")


async def test_service_that_is_not_used_says_how_to_use_it(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False)
    for name in ("documents", "research", "answers", "keys"):
        with pytest.raises(ConfigError, match=rf'call app\.use\("{name}"\) before it is opened'):
            getattr(app, name)
    with pytest.raises(ConfigError, match="there is no service 'library'; there are: documents,"):
        app.use(cast(Any, "library"))
    async with app:
        with pytest.raises(ConfigError, match=r'call app\.use\("keys"\) before the app is opened'):
            app.use("keys")


async def test_service_registers_its_jobs_and_those_of_what_it_uses(tmp_path: Path) -> None:
    def kinds(*services: Service) -> set[str]:
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", durable=False).use(*services)
        for service in services:
            getattr(app, service)  # reading it registers nothing
        return {kind.partition(".")[0] for kind in app.handlers}

    assert kinds() == kinds("keys") == set()
    assert kinds("documents") == kinds("documents", "documents") == {"ingest"}
    assert kinds("research") == {"ingest", "research"}
    assert kinds("answers", "keys") == {"ingest", "research", "answers"}


async def test_what_is_used_outside_the_app_says_so(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/jobs.db", new_url()):
        access = Penstock(url).use("keys").keys.store
        with pytest.raises(QueueError, match="inside `async with app:`"):
            await access.keys()


async def test_keys_and_documents_beside_redis_share_the_stores_connections(
    tmp_path: Path,
) -> None:
    store = new_url()
    app = Penstock(redis_url("redis"), store=store, blobs=str(tmp_path))
    documents = app.use("documents", "keys").documents
    async with app, psql(store) as mine:
        await documents.documents()
        await app.keys.create("ci")
        names = await mine.fetch(
            "SELECT DISTINCT application_name FROM pg_stat_activity"
            f" WHERE application_name LIKE '%{mine.schema.strip(chr(34))}'"
        )
        assert [row[0].split()[1] for row in names] == ["store"]


async def test_an_app_can_be_opened_again_with_its_store(tmp_path: Path) -> None:
    for store in (f"sqlite:///{tmp_path}/store.db", new_url()):
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", store=store, durable=False)
        keys = app.use("keys").keys
        async with app:
            key, secret = await keys.create("ci")
        async with app:
            assert [one.id for one in await keys.list()] == [key.id]
            assert (await keys.find(secret.reveal())) is not None
            await keys.revoke(key.id)
            assert await keys.find(secret.reveal()) is None


async def test_an_app_whose_store_is_away_leaves_nothing_open_and_opens_once_it_is_back(
    tmp_path: Path,
) -> None:
    with Proxy(new_url()) as proxy:
        app = Penstock(f"sqlite:///{tmp_path}/jobs.db", store=proxy.url, durable=False)
        access, before = app.use("keys").keys.store, threading.enumerate()
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
        access = app.use("keys").keys.store
        async with app:
            await access.keys()
            proxy.silence()
            begun = time.monotonic()
            with pytest.raises(QueueUnavailable):
                await access.begin("default", ROUTE, "k", "body", "r1", "j1")
            assert time.monotonic() - begun < 10 * COMMAND_SECONDS
            proxy.resume()
            assert await access.begin("default", ROUTE, "k", "body", "r2", "j2") == Begun("j2")
