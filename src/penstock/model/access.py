"""API keys with tenant and scopes, requests with an Idempotency-Key, and actions of callers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.errors import ValidationError
from penstock.model.job import TOOL_NAME

NAME_LIMIT = 240
SECRET_BYTES = 32
MAX_TOOLS = 100
LEASE_SECONDS = 180.0
"""Twice the server's deadline of 90 s: by then a request is over, or its server is dead."""


class KeyScope(StrEnum):
    """A permission of a key. None of them includes another."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(slots=True, frozen=True)
class ApiKey:
    """A key as it is stored: everything but its secret, of which only a hash is kept."""

    id: str
    tenant: str
    name: str
    """For people: whose it is, or what for."""
    scopes: frozenset[KeyScope]
    created_at: float
    revoked_at: float | None = None
    last_used_at: float | None = None
    """To the minute or so."""
    requests_per_minute: int | None = None
    """None: the server's limit."""
    tools: frozenset[str] | None = None
    """It may call these tools and do nothing else; None: no such limit."""


EVERYTHING = frozenset(KeyScope)


@dataclass(slots=True, frozen=True)
class Caller:
    """The caller of an operation, over HTTP or MCP."""

    tenant: str
    scopes: frozenset[KeyScope]
    key: str | None = None
    """The key's id; None: nobody in particular, on this machine."""
    requests_per_minute: int | None = None
    name: str = ""
    """That of the key."""
    tools: frozenset[str] | None = None
    """The only tools that they may call, who then may do nothing else; None: all."""

    def lacks(self, scope: KeyScope) -> str | None:
        """What to tell a caller who may not; None where they may."""
        if scope in self.scopes:
            return None
        return f"this needs the scope {scope}; the key has {', '.join(sorted(self.scopes))}"

    def may_call(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def confined(self) -> str | None:
        """What to tell a caller who may only call tools, of everything else; None for others."""
        if self.tools is None:
            return None
        return f"this key may only call tools: {', '.join(sorted(self.tools))}"


class ActionOutcome(StrEnum):
    """The result of an action."""

    BEGUN = "begun"
    """Nobody has told: it is under way, or the server died."""
    DONE = "done"
    PARTIAL = "partial"
    """Some of what was asked for could not be done; `detail` says how much."""
    FAILED = "failed"


@dataclass(slots=True, frozen=True)
class Action:
    """An action of a caller on jobs, lanes or documents, over HTTP."""

    id: str
    """Ordered by time."""
    at: float
    tenant: str
    key_id: str | None
    """None: nobody in particular, on the server's machine."""
    key_name: str
    action: str
    """What was done to what: `jobs.cancel`, `lane.pause`."""
    subject: str
    """The id or name of what it was done to."""
    detail: Mapping[str, Any]
    """Figures, filters, limits; no payloads."""
    outcome: ActionOutcome


class Secret:
    """A text that is shown only where `reveal` is called: not in logs, reprs or tracebacks."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(...)"


def new_key(
    name: str,
    *,
    tenant: str = "default",
    scopes: Iterable[KeyScope | str] = (KeyScope.READ, KeyScope.WRITE),
    requests_per_minute: int | None = None,
    tools: Iterable[str] | None = None,
) -> tuple[ApiKey, Secret]:
    """A key to be stored, and the secret to be handed to its owner. ValidationError says what
    is wrong with what was asked for."""
    from penstock import runtime  # late: it loads asyncio, which `penstock --help` does without
    from penstock.model.ids import new_id

    for what, text in (("name", name), ("tenant", tenant)):
        if not 0 < len(text) <= NAME_LIMIT or not text.isprintable():
            raise ValidationError(f"{what} is 1 to {NAME_LIMIT} printable characters, not {text!r}")
    names = {str(scope) for scope in scopes}
    if not names or not names <= set(KeyScope):
        raise ValidationError(f"a key needs scopes: read, write, admin; not {sorted(names)}")
    if requests_per_minute is not None and requests_per_minute < 1:
        raise ValidationError(f"requests_per_minute is from 1 up, not {requests_per_minute!r}")
    named = None if tools is None else frozenset(tools)
    if named is not None:
        check_tools(named, names)
    key = ApiKey(
        id=new_id(),
        tenant=tenant,
        name=name,
        scopes=frozenset(map(KeyScope, names)),
        created_at=runtime.now(),
        requests_per_minute=requests_per_minute,
        tools=named,
    )
    # Letters and digits only, so that a double click selects all of it.
    text = base64.b32encode(runtime.random_bytes(SECRET_BYTES)).decode().rstrip("=").lower()
    return key, Secret(f"pk_{key.id}_{text}")


def check_tools(tools: frozenset[str], scopes: set[str]) -> None:
    """Refuse what no key can be confined to."""
    if not 0 < len(tools) <= MAX_TOOLS:
        raise ValidationError(f"a key for tools names 1 to {MAX_TOOLS} of them, not {len(tools)}")
    for tool in tools:
        if not TOOL_NAME.fullmatch(tool):
            raise ValidationError(f"{tool!r} is no name of a tool")
    if KeyScope.ADMIN in scopes:
        raise ValidationError("a key that may only call tools cannot have the scope admin")


def hash_of(secret: str) -> str:
    """What a secret is stored and looked up by.

    A plain SHA-256: slow hashes are for passwords, which can be guessed. This is 256 random bits,
    which cannot, and the look-up is part of every request. Looking up the hash also tells nobody
    by its time how much of a secret was right.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True, frozen=True)
class Begun:
    """Nobody has made this request before: carry it out, then `finish` or `abandon`."""

    made: str
    """The id to make it under: the one given, or that of the request this takes over from. What
    that one made may be there already."""


@dataclass(slots=True, frozen=True)
class InProgress:
    """The same request is being carried out."""

    id: str
    made: str
    """The id of what it makes."""


@dataclass(slots=True, frozen=True)
class Done:
    """The same request was answered: give this answer again."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(slots=True, frozen=True)
class Conflict:
    """The key was used for another request: another fingerprint."""


Beginning = Begun | InProgress | Done | Conflict
