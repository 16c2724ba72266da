"""API keys, idempotent requests and what callers did, in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from penstock import runtime
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
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.adapters.sqlite.file import SqliteFile
from penstock.model.access import Action, ApiKey
from penstock.ports.access import LEASE_SECONDS, Beginning, Begun


class SqliteAccess:
    """See `penstock.ports.access.AccessStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def add_key(self, key: ApiKey, hash: str) -> None:  # noqa: A002
        def add(tx: Transaction) -> None:
            tx.execute(
                f"INSERT INTO api_keys ({KEY_COLUMNS}, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key.id,
                    key.tenant,
                    key.name,
                    scopes_text(key),
                    key.created_at,
                    key.revoked_at,
                    key.last_used_at,
                    key.requests_per_minute,
                    hash,
                ),
            )

        await self._file.write(add)

    async def keys(self, tenant: str | None = None) -> list[ApiKey]:
        def read(connection: sqlite3.Connection) -> list[ApiKey]:
            rows = connection.execute(
                f"SELECT {KEY_COLUMNS} FROM api_keys WHERE ?1 IS NULL OR tenant = ?1"
                " ORDER BY id DESC",
                (tenant,),
            )
            return [key_of(row) for row in rows]

        return await self._file.read(read)

    async def key_by_hash(self, hash: str) -> ApiKey | None:  # noqa: A002
        def read(connection: sqlite3.Connection) -> ApiKey | None:
            row = connection.execute(
                f"SELECT {KEY_COLUMNS} FROM api_keys WHERE hash = ? AND revoked_at IS NULL",
                (hash,),
            ).fetchone()
            return None if row is None else key_of(row)

        key = await self._file.read(read)
        if key is None or (key.last_used_at or 0.0) > runtime.now() - USE_SECONDS:
            return key
        # A power loss may take it: it is not worth a wait for the disk.
        used = await self._file.write(lambda tx: _note_use(tx, key.id), soft=True)
        return replace(key, last_used_at=used)

    async def revoke(self, id: str) -> ApiKey | None:  # noqa: A002
        def revoke(tx: Transaction) -> ApiKey | None:
            tx.execute(
                "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
                (tx.now, id),
            )
            row = tx.execute(f"SELECT {KEY_COLUMNS} FROM api_keys WHERE id = ?", (id,)).fetchone()
            return None if row is None else key_of(row)

        return await self._file.write(revoke)

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

        def begin(tx: Transaction) -> Beginning:
            taken = tx.execute(
                sql("begin_request"),
                {
                    "tenant": tenant,
                    "route": route,
                    "key": hashed,
                    "fingerprint": fingerprint,
                    "id": id,
                    "made": made,
                    "now": tx.now,
                    "until": tx.now + lease_seconds,
                },
            ).fetchall()
            if taken:
                return Begun(taken[0][0])
            row = tx.execute(
                f"SELECT {REQUEST_COLUMNS} FROM api_requests"
                " WHERE (tenant, route, key) = (?, ?, ?)",
                (tenant, route, hashed),
            ).fetchone()
            return beginning_of(row, fingerprint)

        return await self._file.write(begin)

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
        def finish(tx: Transaction) -> bool:
            answer = {"status": status, "headers": headers_text(headers), "body": body}
            hashed = hashed_key(tenant, route, key)
            where = {"tenant": tenant, "route": route, "key": hashed, "id": id, "now": tx.now}
            return tx.execute(sql("finish_request"), answer | where).rowcount == 1

        return await self._file.write(finish)

    async def abandon(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        def abandon(tx: Transaction) -> bool:
            gone = tx.execute(
                "DELETE FROM api_requests"
                " WHERE (tenant, route, key, id) = (?, ?, ?, ?) AND status IS NULL",
                (tenant, route, hashed_key(tenant, route, key), id),
            )
            return gone.rowcount == 1

        return await self._file.write(abandon)

    async def release(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        def release(tx: Transaction) -> bool:
            released = tx.execute(
                "UPDATE api_requests SET at = ?"
                " WHERE (tenant, route, key, id) = (?, ?, ?, ?) AND status IS NULL",
                (tx.now, tenant, route, hashed_key(tenant, route, key), id),
            )
            return released.rowcount == 1

        return await self._file.write(release)

    async def purge(self, before: float) -> int:
        def purge(tx: Transaction) -> int:
            return tx.execute(
                sql("purge_requests"), {"before": before, "most": PURGE_BATCH}
            ).rowcount

        count = 0
        while batch := await self._file.write(purge):
            count += batch
        return count

    async def record(self, action: Action) -> None:
        await self._file.write(lambda tx: tx.execute(sql("record_action"), action_row(action)))

    async def actions(
        self, limit: int, before: str | None = None, tenant: str | None = None
    ) -> list[Action]:
        def read(connection: sqlite3.Connection) -> list[Action]:
            whose = "" if tenant is None else " AND tenant = :tenant"
            rows = connection.execute(
                f"SELECT {ACTION_COLUMNS} FROM actions WHERE id < :before{whose}"
                " ORDER BY id DESC LIMIT :limit",
                {"before": before or LAST, "tenant": tenant, "limit": limit},
            )
            return [action_of(row) for row in rows]

        return await self._file.read(read)

    async def purge_actions(self, before: float) -> int:
        def purge(tx: Transaction) -> int:
            old = {"before": before, "most": PURGE_BATCH}
            return tx.execute(sql("purge_actions"), old).rowcount

        count = 0
        while batch := await self._file.write(purge):
            count += batch
        return count


def _note_use(tx: Transaction, key_id: str) -> float:
    tx.execute("UPDATE api_keys SET last_used_at = ? WHERE id = ?", (tx.now, key_id))
    return tx.now
