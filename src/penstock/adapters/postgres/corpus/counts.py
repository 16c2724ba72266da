"""Tenants, and what is counted for them: chunks, terms, and how many chunks hold each term.

Counts are exact and cost a search nothing. They are kept in the transaction that publishes, under
the lock of the tenant's row, so of one tenant one document is published at a time; what takes
long (parsing, embedding, staging) is done before.
"""

from __future__ import annotations

from penstock.adapters.postgres.database import Transaction

_NUMBER = "SELECT number FROM penstock.tenants WHERE name = $1"


async def tenant_number(tx: Transaction, name: str) -> int:
    """The number of a tenant, who is made known if need be."""
    number: int | None = await tx.fetchval(_NUMBER, name)
    if number is None:
        add = "INSERT INTO penstock.tenants (name) VALUES ($1) ON CONFLICT (name) DO NOTHING"
        await tx.execute(add, name)
        number = await tx.fetchval(_NUMBER, name)
    assert number is not None
    return number


def lexeme(tenant: int, term: str) -> str:
    """A term as chunks of a tenant are indexed by. No term holds a space."""
    return f"{tenant} {term}"


async def replace(
    tx: Transaction, tenant: str, document: int, old: int | None, new: int | None
) -> None:
    """Count one version of a document instead of another, while the chunks of both are there."""
    if old == new:
        return
    number = await tx.fetchval(f"{_NUMBER} FOR UPDATE", tenant)
    await tx.execute("count_terms", document, old, new)
    if old is not None:
        await tx.execute("forget_terms", document, old)
    await tx.execute("count_chunks", document, old, new, number)
