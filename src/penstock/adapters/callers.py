"""Callers' connections, in whose transactions jobs are stored: the driver's behind what they pass.

A framework's connection is known by its class, and a class that was never imported has no
instances: so nothing is imported here for its sake.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from penstock.errors import ConfigError

ANY_STATEMENT = "SELECT 1"
"""Has SQLAlchemy begin, and its commit commit: it knows nothing of what the driver is told."""
_SYNC = {
    "sqlalchemy.engine": ("Connection",),
    "sqlalchemy.orm": ("Session", "scoped_session"),
    "django.db.backends.base.base": ("BaseDatabaseWrapper",),
    "django.utils.connection": ("ConnectionProxy",),
    "psycopg": ("Connection",),
    "psycopg2.extensions": ("connection",),
    "sqlite3": ("Connection",),
}
_ASYNC = {
    "sqlalchemy.ext.asyncio": ("AsyncConnection", "AsyncSession", "async_scoped_session"),
    "psycopg": ("AsyncConnection",),
    "asyncpg.connection": ("Connection",),
    "asyncpg.pool": ("PoolConnectionProxy",),
    "aiosqlite": ("Connection",),
}


class Driver(NamedTuple):
    """A driver's own connection."""

    name: str
    conn: Any


def is_async(conn: Any) -> bool:
    """Whether it is used by await. ConfigError where it is no connection that is known."""
    awaited = _is_one(conn, _ASYNC)
    if not awaited and not _is_one(conn, _SYNC):
        raise ConfigError(
            f"conn= is a {_name(conn)}; it takes a connection of asyncpg, psycopg, sqlite3, "
            "aiosqlite or Django, or a connection or session of SQLAlchemy"
        )
    return awaited


def is_django(conn: Any) -> bool:
    """Whether it is Django's, which is another one in each thread."""
    return _is_one(conn, {name: _SYNC[name] for name in _SYNC if name.startswith("django")})


def driver(conn: Any) -> Driver:
    """The driver's connection behind one that is not awaited."""
    if is_django(conn):
        if not conn.in_atomic_block:
            raise ConfigError(
                "conn= is Django's connection, but no transaction is open on it in this thread: "
                "enqueue inside `with transaction.atomic():`"
            )
        conn.ensure_connection()
        return _driver(conn.connection)
    if _is_one(conn, {"sqlalchemy.orm": ("scoped_session",)}):
        conn = conn()
    if _is_one(conn, {"sqlalchemy.orm": ("Session",)}):
        conn = conn.connection()
    if _is_one(conn, {"sqlalchemy.engine": ("Connection",)}):
        conn.exec_driver_sql(ANY_STATEMENT)
        return _driver(conn.connection.driver_connection)
    return _driver(conn)


async def async_driver(conn: Any) -> Driver:
    """The driver's connection behind one that is awaited."""
    if _is_one(conn, {"sqlalchemy.ext.asyncio": ("async_scoped_session",)}):
        conn = conn()
    if _is_one(conn, {"sqlalchemy.ext.asyncio": ("AsyncSession",)}):
        conn = await conn.connection()
    if _is_one(conn, {"sqlalchemy.ext.asyncio": ("AsyncConnection",)}):
        await conn.exec_driver_sql(ANY_STATEMENT)
        return _driver((await conn.get_raw_connection()).driver_connection)
    return _driver(conn)


def _driver(conn: Any) -> Driver:
    for cls in type(conn).__mro__:
        name = cls.__module__.partition(".")[0]
        if name in ("asyncpg", "psycopg", "psycopg2", "sqlite3", "_sqlite3", "aiosqlite"):
            return Driver(name.lstrip("_"), conn)
    raise ConfigError(f"conn= is used over {_name(conn)}, a driver that is not known here")


def _is_one(conn: Any, known: dict[str, tuple[str, ...]]) -> bool:
    for module, names in known.items():
        if (loaded := sys.modules.get(module)) is not None:
            classes = [getattr(loaded, name, None) for name in names]
            if isinstance(conn, tuple(one for one in classes if one is not None)):
                return True
    return False


def _name(conn: Any) -> str:
    return f"{type(conn).__module__}.{type(conn).__qualname__}"
