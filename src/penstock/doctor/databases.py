"""Checks the queue and the store, bypassing the ports: opening one may migrate its tables."""

from __future__ import annotations

from importlib.util import find_spec

from penstock.adapters.database_facts import Schema
from penstock.config import hide_secrets
from penstock.doctor.context import Case
from penstock.doctor.diagnosis import Diagnosis, broken, ok, skipped
from penstock.errors import ConfigError, PenstockError, QueueUnavailable
from penstock.ports.documents import ServingModel

_DRIVERS = {
    "sqlite": None,
    "postgres": "asyncpg",
    "postgresql": "asyncpg",
    "redis": "redis",
    "rediss": "redis",
    "unix": "redis",
    "valkey": "redis",
}


async def look_at_queue(case: Case) -> list[Diagnosis]:
    shared = case.store == case.config.queue
    return await _look("queue", case.config.queue, case, documents=shared)


async def look_at_store(case: Case) -> list[Diagnosis]:
    if case.store is None and case.config.store:
        found = f"`store` is {hide_secrets(case.config.store)}, which is not a store URL"
        return [broken("store", found, "set it to sqlite:///documents.db or postgresql://...")]
    if case.store is None:
        return [
            skipped(
                "store",
                "no store: documents, research, answers and API keys are unavailable",
                "set `store: sqlite:///documents.db` or `store: postgresql://...` to have them",
            )
        ]
    if case.store == case.config.queue:
        return [ok("store", "same as the queue")]
    return await _look("store", case.store, case, documents=True)


async def _look(part: str, url: str, case: Case, *, documents: bool) -> list[Diagnosis]:
    try:
        match _kind(url):
            case "sqlite":
                from penstock.doctor import sqlite

                return await sqlite.look(part, url, case)
            case "redis":
                from penstock.doctor import redis

                return await redis.look(part, url, case)
            case _:
                from penstock.doctor import postgres

                return await postgres.look(part, url, case, documents=documents)
    except ConfigError as error:
        return [broken(part, str(error), f"correct `{part}`")]
    except QueueUnavailable as error:
        return [broken(part, str(error), f"start it, or correct `{part}`")]
    except PenstockError as error:
        return [broken(part, str(error), f"do as it says, or name another `{part}`")]


def _kind(url: str) -> str:
    """Return sqlite, asyncpg or redis. Raises ConfigError for an unknown database or a missing
    driver."""
    scheme = url.split(":", 1)[0]
    if scheme not in _DRIVERS:
        raise ConfigError(f"there is nothing for {scheme!r} URLs")
    driver = _DRIVERS[scheme]
    if driver is not None and find_spec(driver) is None:
        raise ConfigError(f"the library {driver} is not installed, which {scheme}:// needs")
    return driver or "sqlite"


async def schemas(url: str) -> list[Schema]:
    """Read the recorded schema versions at `url`; empty if there are none."""
    match _kind(url):
        case "sqlite":
            from penstock.doctor import sqlite

            return [(await sqlite.facts(url)).schema]
        case "redis":
            from penstock.doctor import redis

            found = await redis.facts(url)
            return [] if found.exists else [Schema(0, 0, 1)]
        case _:
            from penstock.doctor import postgres

            return [(await postgres.facts(url)).queue]


async def serving_at(url: str) -> ServingModel | None:
    """Read which embedding model the store at `url` is searched with."""
    if _kind(url) == "sqlite":
        from penstock.doctor import sqlite

        return (await sqlite.facts(url)).serving
    from penstock.doctor import postgres

    return (await postgres.facts(url)).serving
