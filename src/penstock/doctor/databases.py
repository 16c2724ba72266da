"""Checks the queue and the store, bypassing the ports: opening one may migrate its tables."""

from __future__ import annotations

from importlib.util import find_spec

from penstock.adapters.database_facts import ClockSkew, Schema
from penstock.config import hide_secrets
from penstock.doctor.context import Case, Diagnosis, broken, ok, skipped, warning
from penstock.errors import ConfigError, PenstockError, QueueUnavailable
from penstock.ports.documents import ServingModel


def judge_schema(part: str, schema: Schema) -> Diagnosis:
    """Compare the schema version with the one this code needs."""
    name = f"{part} schema"
    if schema.missing:
        return ok(name, "does not exist yet: the first process creates it")
    if schema.too_new:
        found = f"version {schema.version} needs a newer Penstock: this one knows {schema.known}"
        return broken(name, found, "upgrade Penstock on this machine")
    if schema.older:
        found = f"version {schema.version}; this Penstock migrates it to {schema.known}"
        advice = "back it up, then start a process of this version, which migrates it"
        return warning(name, found, advice)
    if schema.version > schema.known:
        found = f"version {schema.version} is newer than this Penstock, which can still use it"
        return warning(name, found, "finish the upgrade: replace the processes of this version")
    return ok(name, f"version {schema.version}, the newest this Penstock knows")


MAX_SECONDS = 1.0


def judge_clock(part: str, clock: ClockSkew) -> Diagnosis:
    """Compare the clocks. Jobs use the server's, so a wrong local clock only affects times that
    callers compute (`run_at`, deadlines), logs, and people."""
    name = f"{part} clock"
    if abs(clock.seconds) > MAX_SECONDS + clock.error:
        side = "behind" if clock.seconds > 0 else "ahead of"
        found = f"this machine's is {abs(clock.seconds):.1f} s {side} the server's"
        advice = "set both by NTP (`timedatectl set-ntp true`, chrony)"
        return warning(name, found, advice)
    return ok(name, f"within {MAX_SECONDS:g} s of this machine's")


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
