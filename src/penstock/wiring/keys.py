"""`app.keys`: the API keys of the server."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.adapters.sql.access import AccessStore
from penstock.model.access import ApiKey, KeyScope, Secret, hash_of, new_key


class ApiKeys:
    """Creates, lists and revokes API keys. Of a secret only a hash is stored."""

    def __init__(self, store: AccessStore) -> None:
        self.store = store
        """What the server keeps of its callers: keys, answered requests, actions."""

    async def create(
        self,
        name: str,
        *,
        tenant: str = "default",
        scopes: Iterable[KeyScope | str] = (KeyScope.READ, KeyScope.WRITE),
        requests_per_minute: int | None = None,
        tools: Iterable[str] | None = None,
    ) -> tuple[ApiKey, Secret]:
        """Store a new key; its secret, to be handed to its owner, cannot be had again. With `tools`
        it may call these, over HTTP and MCP, and do nothing else.
        ValidationError says what is wrong with what was asked for."""
        key, secret = new_key(
            name, tenant=tenant, scopes=scopes, requests_per_minute=requests_per_minute, tools=tools
        )
        await self.store.add_key(key, hash_of(secret.reveal()))
        return key, secret

    async def list(self, tenant: str | None = None) -> list[ApiKey]:
        """The keys of one tenant or of all, the newest first, revoked ones too."""
        return await self.store.keys(tenant)

    async def find(self, secret: str) -> ApiKey | None:
        """The key with this secret, unless there is none or it is revoked."""
        return await self.store.key_by_hash(hash_of(secret))

    async def revoke(self, key_id: str) -> ApiKey | None:
        """Refuse a key from now on; it is kept, and cannot be brought back. None: there is none
        with this id."""
        return await self.store.revoke(key_id)
