"""API keys, idempotent requests and what callers did, in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.adapters.postgres.database import Database, Pool, Transaction
from penstock.adapters.sql.access_rows import (
    ACTION_COLUMNS,
    KEY_COLUMNS,
    LAST,
    PURGE_BATCH,
    REQUEST_COLUMNS,
    USE_SECONDS,
    action_of,
    action_row,
    beginning_of,
    check_key,
    hashed_key,
    headers_text,
    key_of,
    scopes_text,
)
from penstock.model.access import Action, ApiKey
from penstock.ports.access import LEASE_SECONDS, Beginning, Begun


class PostgresAccess:
    """See `penstock.ports.access.AccessStore`. `pool` is that of the store it is in."""

    def __init__(self, database: Database, pool: Callable[[], Pool]) -> None:
        self._database = database
        self._pool = pool

    async def add_key(self, key: ApiKey, hash: str) -> None:  # noqa: A002
        async def add(tx: Transaction) -> None:
            await tx.execute(
                f"INSERT INTO penstock.api_keys ({KEY_COLUMNS}, hash)"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                key.id,
                key.tenant,
                key.name,
                scopes_text(key),
                key.created_at,
                key.revoked_at,
                key.last_used_at,
                key.requests_per_minute,
                hash,
            )

        await self._pool().write(add)

    async def keys(self, tenant: str | None = None) -> list[ApiKey]:
        statement = self._database.sql(
            f"SELECT {KEY_COLUMNS} FROM penstock.api_keys"
            " WHERE $1::text IS NULL OR tenant = $1 ORDER BY id DESC"
        )
        async with self._pool().connection() as connection:
            return [key_of(row) for row in await connection.fetch(statement, tenant)]

    async def key_by_hash(self, hash: str) -> ApiKey | None:  # noqa: A002
        statement = self._database.sql(
            f"SELECT {KEY_COLUMNS}, coalesce(last_used_at, 0) > penstock.clock() - $2::float8"
            " FROM penstock.api_keys WHERE hash = $1 AND revoked_at IS NULL"
        )
        async with self._pool().connection() as connection:
            row = await connection.fetchrow(statement, hash, USE_SECONDS)
        if row is None or row[-1]:
            return None if row is None else key_of(row)

        async def note_use(tx: Transaction) -> ApiKey | None:
            used = await tx.fetchrow(
                "UPDATE penstock.api_keys SET last_used_at = $2 WHERE id = $1"
                f" AND revoked_at IS NULL RETURNING {KEY_COLUMNS}",
                row["id"],
                tx.now,
            )
            return None if used is None else key_of(used)

        return await self._pool().write(note_use, soft=True)

    async def revoke(self, id: str) -> ApiKey | None:  # noqa: A002
        async def revoke(tx: Transaction) -> ApiKey | None:
            row = await tx.fetchrow(
                "UPDATE penstock.api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1"
                f" RETURNING {KEY_COLUMNS}",
                id,
                tx.now,
            )
            return None if row is None else key_of(row)

        return await self._pool().write(revoke)

    async def begin(
        self,
        tenant: str,
        route: str,
        key: str,
        fingerprint: str,
        id: str,  # noqa: A002
        made: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
    ) -> Beginning:
        check_key(key)

        hashed = hashed_key(tenant, route, key)

        async def begin(tx: Transaction) -> Beginning:
            until = tx.now + lease_seconds
            where = (tenant, route, hashed)
            taken = await tx.fetchrow("begin_request", *where, fingerprint, id, until, tx.now, made)
            if taken is not None:
                return Begun(taken["made"])
            row = await tx.fetchrow(
                f"SELECT {REQUEST_COLUMNS} FROM penstock.api_requests"
                " WHERE (tenant, route, key) = ($1, $2, $3)",
                *where,
            )
            return beginning_of(row, fingerprint)

        return await self._pool().write(begin)

    async def finish(
        self,
        tenant: str,
        route: str,
        key: str,
        id: str,  # noqa: A002
        status: int,
        headers: Sequence[tuple[str, str]],
        body: bytes,
    ) -> bool:
        async def finish(tx: Transaction) -> bool:
            where = (tenant, route, hashed_key(tenant, route, key), id)
            answer = (status, headers_text(headers), body, tx.now)
            return await tx.execute("finish_request", *where, *answer) == 1

        return await self._pool().write(finish)

    async def abandon(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        async def abandon(tx: Transaction) -> bool:
            gone = await tx.execute(
                "DELETE FROM penstock.api_requests"
                " WHERE (tenant, route, key, id) = ($1, $2, $3, $4) AND status IS NULL",
                tenant,
                route,
                hashed_key(tenant, route, key),
                id,
            )
            return gone == 1

        return await self._pool().write(abandon)

    async def release(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        async def release(tx: Transaction) -> bool:
            released = await tx.execute(
                "UPDATE penstock.api_requests SET at = $5"
                " WHERE (tenant, route, key, id) = ($1, $2, $3, $4) AND status IS NULL",
                tenant,
                route,
                hashed_key(tenant, route, key),
                id,
                tx.now,
            )
            return released == 1

        return await self._pool().write(release)

    async def purge(self, before: float) -> int:
        async def purge(tx: Transaction) -> int:
            return await tx.execute("purge_requests", before, PURGE_BATCH)

        count = 0
        while batch := await self._pool().write(purge):
            count += batch
        return count

    async def record(self, action: Action) -> None:
        async def record(tx: Transaction) -> None:
            await tx.execute("record_action", *action_row(action))

        await self._pool().write(record)

    async def actions(
        self, limit: int, before: str | None = None, tenant: str | None = None
    ) -> list[Action]:
        whose = "" if tenant is None else " AND tenant = $3"
        statement = self._database.sql(
            f"SELECT {ACTION_COLUMNS} FROM penstock.actions WHERE id < $1{whose}"
            " ORDER BY id DESC LIMIT $2"
        )
        values = (before or LAST, limit) if tenant is None else (before or LAST, limit, tenant)
        async with self._pool().connection() as connection:
            return [action_of(row) for row in await connection.fetch(statement, *values)]

    async def purge_actions(self, before: float) -> int:
        async def purge(tx: Transaction) -> int:
            return await tx.execute("purge_actions", before, PURGE_BATCH)

        count = 0
        while batch := await self._pool().write(purge):
            count += batch
        return count
