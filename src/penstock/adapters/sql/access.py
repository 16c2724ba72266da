"""API keys, idempotent requests and the audit log in a database. Statements: `access.sql`.

They promise:
- of any number of requests with one key (of one tenant and route) at a time, exactly one begins;
- a request that was begun is answered, abandoned, or free to be taken over once its lease is over:
  a server that died blocks nobody for ever;
- what a request makes has the id that its record was begun with, for as long as there is a record:
  whoever takes it over makes it under that id, and once it is forgotten the key is a new one;
- only whoever holds the record, by the id it began with, ends it: after a take-over the one
  before cannot;
- every record belongs to a tenant and a route, and nothing is read without naming them;
- of secrets, and of the keys of requests, it has only hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from penstock.adapters.sql.dialect import Row, Sql, SqlDatabase
from penstock.errors import ValidationError
from penstock.model.access import (
    LEASE_SECONDS,
    Action,
    ActionOutcome,
    ApiKey,
    Beginning,
    Begun,
    Conflict,
    Done,
    InProgress,
    KeyScope,
)

USE_SECONDS = 60.0
"""How exactly a key's last use is known: no more than one write a minute for it."""
KEY_LIMIT = 255
"""Characters of an Idempotency-Key."""
PURGE_BATCH = 1000
"""Records forgotten in one transaction, so that nobody waits long for it."""
LAST = "g"
"""After every id."""


class AccessStore:
    """Usable while the store it is in is open."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def add_key(self, key: ApiKey, hash: str) -> None:  # noqa: A002
        """Store a new key under the hash of its secret."""
        tools = None if key.tools is None else " ".join(sorted(key.tools))
        words = {"scopes": " ".join(sorted(key.scopes)), "tools": tools}
        values = asdict(key) | words | {"hash": hash}
        await self._execute("add_key", **values)

    async def keys(self, tenant: str | None = None) -> list[ApiKey]:
        """Of one tenant or of all, the newest first, revoked ones too."""
        return [_key_of(row) for row in await self._database.fetch("keys", tenant=tenant)]

    async def key_by_hash(self, hash: str) -> ApiKey | None:  # noqa: A002
        """The key whose secret has this hash, unless there is none or it is revoked. Notes that
        it was used, once a minute at most."""
        rows = await self._database.fetch("key_by_hash", hash=hash, seconds=USE_SECONDS)
        if not rows or rows[0]["recent"]:
            return _key_of(rows[0]) if rows else None

        async def note_use(tx: Sql) -> ApiKey | None:
            used = await tx.one("note_use", id=rows[0]["id"], now=tx.now)
            return None if used is None else _key_of(used)

        # A power loss may take it: it is not worth a wait for the disk.
        return await self._database.write(note_use, soft=True)

    async def revoke(self, id: str) -> ApiKey | None:  # noqa: A002
        """Let a key be good for nothing from now on; it is kept. Harmless when done twice. None:
        there is no such key."""

        async def revoke(tx: Sql) -> ApiKey | None:
            row = await tx.one("revoke_key", id=id, now=tx.now)
            return None if row is None else _key_of(row)

        return await self._database.write(revoke)

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
        """Take the key for a request, or say what became of the one that has it. `fingerprint`
        tells requests apart, `id` is that of this one, and `made` that of what it would make."""
        if not 0 < len(key) <= KEY_LIMIT or not key.isprintable():
            raise ValidationError(f"an Idempotency-Key is 1 to {KEY_LIMIT} printable characters")
        named = _named(tenant, route, key, id)

        async def begin(tx: Sql) -> Beginning:
            lease = {"now": tx.now, "until": tx.now + lease_seconds}
            taken = await tx.one(
                "begin_request", **named, **lease, fingerprint=fingerprint, made=made
            )
            if taken is not None:
                return Begun(taken["made"])
            return _beginning_of(await tx.one("read_request", **named), fingerprint)

        return await self._database.write(begin)

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
        """Keep the answer. False: it is not this request's any more, nothing was changed."""
        answer = {"status": status, "headers": json.dumps(list(headers)), "body": body}
        named = _named(tenant, route, key, id)
        return await self._execute("finish_request", **named, **answer) == 1

    async def abandon(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        """Free the key: the request failed before anything was made. False as with `finish`."""
        return await self._execute("abandon_request", **_named(tenant, route, key, id)) == 1

    async def release(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        """End the lease: nobody knows whether it was made. Who sends the request again takes it
        over at once, under the same id. False as with `finish`."""
        return await self._execute("release_request", **_named(tenant, route, key, id)) == 1

    async def purge(self, before: float) -> int:
        """Forget what was answered, or whose lease was over, before a time of the store's clock;
        how many."""
        return await self._purge("purge_requests", before)

    async def record(self, action: Action) -> None:
        """Add to the log of what callers did. With the same id again: how it ended, which takes the
        place of subject, detail and outcome."""
        detail = json.dumps(dict(action.detail))
        values = asdict(action) | {"detail": detail, "outcome": str(action.outcome)}
        await self._execute("record_action", **values)

    async def actions(
        self, limit: int, before: str | None = None, tenant: str | None = None
    ) -> list[Action]:
        """Of one tenant or of all, the newest first; `before` is the last id of the page before."""
        statement = "actions" if tenant is None else "actions_of_tenant"
        rows = await self._database.fetch(
            statement, before=before or LAST, tenant=tenant, limit=limit
        )
        return [_action_of(row) for row in rows]

    async def purge_actions(self, before: float) -> int:
        """Forget what was done before a time of the store's clock; how many."""
        return await self._purge("purge_actions", before)

    async def _execute(self, statement: str, **values: object) -> int:
        """Run one statement in a transaction whose time is `now`; how many rows it changed."""
        return await self._database.write(
            lambda tx: tx.execute(statement, **{"now": tx.now, **values})
        )

    async def _purge(self, statement: str, before: float) -> int:
        count = 0
        while batch := await self._execute(statement, before=before, most=PURGE_BATCH):
            count += batch
        return count


def _named(tenant: str, route: str, key: str, id: str) -> dict[str, str]:  # noqa: A002
    """A request, by column. Of its key only a hash is stored: it is only compared, and may name a
    person."""
    hashed = hashlib.sha256(f"{tenant}\x1f{route}\x1f{key}".encode()).hexdigest()
    return {"tenant": tenant, "route": route, "key": hashed, "id": id}


def _key_of(row: Row) -> ApiKey:
    known = {field.name: row[field.name] for field in fields(ApiKey)}
    tools = None if row["tools"] is None else frozenset(row["tools"].split())
    scopes = frozenset(map(KeyScope, row["scopes"].split()))
    return ApiKey(**known | {"scopes": scopes, "tools": tools})


def _beginning_of(row: Row, fingerprint: str) -> Beginning:
    """What a request is told that finds a row under its key."""
    if row["fingerprint"] != fingerprint:
        return Conflict()
    if row["status"] is None:
        return InProgress(row["id"], row["made"])
    headers = tuple((name, value) for name, value in json.loads(row["headers"]))
    return Done(row["status"], headers, row["body"])


def _action_of(row: Row) -> Action:
    detail, outcome = json.loads(row["detail"]), ActionOutcome(row["outcome"])
    return Action(**dict(row) | {"detail": detail, "outcome": outcome})
