"""The port to the server's records: API keys, requests with an Idempotency-Key, and the audit log.

An adapter promises:
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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.model.access import Action, ApiKey

LEASE_SECONDS = 180.0
"""Twice the server's deadline of 90 s: by then a request is over, or its server is dead."""


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


class AccessStore(Protocol):
    """Usable while the store it is in is open."""

    async def add_key(self, key: ApiKey, hash: str) -> None:  # noqa: A002 (the port's word)
        """Store a new key under the hash of its secret."""
        ...

    async def keys(self, tenant: str | None = None) -> list[ApiKey]:
        """Of one tenant or of all, the newest first, revoked ones too."""
        ...

    async def key_by_hash(self, hash: str) -> ApiKey | None:  # noqa: A002
        """The key whose secret has this hash, unless there is none or it is revoked. Notes that
        it was used, once a minute at most."""
        ...

    async def revoke(self, id: str) -> ApiKey | None:  # noqa: A002
        """Let a key be good for nothing from now on; it is kept. Harmless when done twice. None:
        there is no such key."""
        ...

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
        ...

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
        ...

    async def abandon(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        """Free the key: the request failed before anything was made. False as with `finish`."""
        ...

    async def release(self, tenant: str, route: str, key: str, id: str) -> bool:  # noqa: A002
        """End the lease: nobody knows whether it was made. Who sends the request again takes it
        over at once, under the same id. False as with `finish`."""
        ...

    async def purge(self, before: float) -> int:
        """Forget what was answered, or whose lease was over, before a time of the store's clock;
        how many."""
        ...

    async def record(self, action: Action) -> None:
        """Add to the log of what callers did. With the same id again: how it ended, which takes the
        place of subject, detail and outcome."""
        ...

    async def actions(
        self, limit: int, before: str | None = None, tenant: str | None = None
    ) -> list[Action]:
        """Of one tenant or of all, the newest first; `before` is the last id of the page before."""
        ...

    async def purge_actions(self, before: float) -> int:
        """Forget what was done before a time of the store's clock; how many."""
        ...
