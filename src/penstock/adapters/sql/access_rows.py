"""API keys, requests and actions as rows: the same columns in every store that speaks SQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from penstock.errors import ValidationError
from penstock.model.access import Action, ActionOutcome, ApiKey, KeyScope
from penstock.ports.access import Beginning, Conflict, Done, InProgress

USE_SECONDS = 60.0
"""How exactly a key's last use is known: no more than one write a minute for it."""
KEY_LIMIT = 255
"""Characters of an Idempotency-Key."""
PURGE_BATCH = 1000
"""Records forgotten in one transaction, so that nobody waits long for it."""

KEY_COLUMNS = "id, tenant, name, scopes, created_at, revoked_at, last_used_at, requests_per_minute"
REQUEST_COLUMNS = "fingerprint, id, status, headers, body, made"


LAST = "g"
"""After every id."""
ACTION_COLUMNS = "id, at, tenant, key_id, key_name, action, subject, detail, outcome"


def check_key(key: str) -> None:
    """ValidationError unless it is an Idempotency-Key."""
    if not 0 < len(key) <= KEY_LIMIT or not key.isprintable():
        raise ValidationError(f"an Idempotency-Key is 1 to {KEY_LIMIT} printable characters")


def hashed_key(tenant: str, route: str, key: str) -> str:
    """What is stored of an Idempotency-Key: it is only compared, and may name a person."""
    return hashlib.sha256(f"{tenant}\x1f{route}\x1f{key}".encode()).hexdigest()


def scopes_text(key: ApiKey) -> str:
    return " ".join(sorted(key.scopes))


def key_of(row: Sequence[Any]) -> ApiKey:
    """The key in a row of KEY_COLUMNS."""
    return ApiKey(
        id=row[0],
        tenant=row[1],
        name=row[2],
        scopes=frozenset(map(KeyScope, row[3].split())),
        created_at=row[4],
        revoked_at=row[5],
        last_used_at=row[6],
        requests_per_minute=row[7],
    )


def headers_text(headers: Sequence[tuple[str, str]]) -> str:
    return json.dumps([[name, value] for name, value in headers])


def beginning_of(row: Sequence[Any], fingerprint: str) -> Beginning:
    """What a request is told that finds a row of REQUEST_COLUMNS under its key."""
    if row[0] != fingerprint:
        return Conflict()
    if row[2] is None:
        return InProgress(row[1], row[5])
    headers = tuple((name, value) for name, value in json.loads(row[3]))
    return Done(row[2], headers, row[4])


def action_row(action: Action) -> tuple[Any, ...]:
    """An action as ACTION_COLUMNS."""
    return (
        action.id,
        action.at,
        action.tenant,
        action.key_id,
        action.key_name,
        action.action,
        action.subject,
        json.dumps(dict(action.detail)),
        str(action.outcome),
    )


def action_of(row: Sequence[Any]) -> Action:
    """The action in a row of ACTION_COLUMNS."""
    return Action(
        id=row[0],
        at=row[1],
        tenant=row[2],
        key_id=row[3],
        key_name=row[4],
        action=row[5],
        subject=row[6],
        detail=json.loads(row[7]),
        outcome=ActionOutcome(row[8]),
    )
