"""The scope of a search, and how much it covers."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.adapters.postgres.database import Connection, Database
from penstock.adapters.sql.document_rows import facts
from penstock.ports.documents import Scope

COUNTED = 10_000
"""Documents that are looked at to tell how much a scope leaves."""


class Filter(NamedTuple):
    """A scope as a condition on `d`, the documents."""

    condition: str
    """With a $n for each value, from 1 on."""
    values: list[Any]


def condition(scope: Scope) -> Filter:
    """Only what is asked for is part of the condition, so that each can go by its own index."""
    parts, values = ["d.tenant = $1", "d.live IS NOT NULL"], [scope.tenant]

    def add(part: str, value: Any) -> None:
        values.append(value)
        parts.append(part.replace("?", f"${len(values)}"))

    if scope.collections is not None:
        add("d.collection = ANY (?)", list(scope.collections))
    if scope.documents is not None:
        add("d.id = ANY (?)", list(scope.documents))
    if scope.metadata:
        add("d.facts @> ?", facts(scope.metadata))
    return Filter(" AND ".join(parts), values)


class Extent(NamedTuple):
    """The amount of data a search covers."""

    tenant: int
    """Its number."""
    chunks: int
    """Of the tenant."""
    terms: int
    """In them."""
    within: int
    """Chunks that the scope leaves, about: of the newest versions, which may not be live yet, and
    of COUNTED documents at most. Only good for choosing a way to search."""
    all: int
    """Chunks of all tenants."""

    @property
    def mean_length(self) -> float:
        return self.terms / self.chunks if self.chunks else 0.0


async def extent(
    database: Database, connection: Connection, scope: Scope, where: Filter
) -> Extent | None:
    """None: the tenant has nothing."""
    row = await connection.fetchrow(
        database.sql(
            "SELECT number, chunks, terms,"
            " (SELECT sum(chunks)::bigint FROM penstock.tenants) AS total"
            " FROM penstock.tenants WHERE name = $1 AND chunks > 0"
        ),
        scope.tenant,
    )
    if row is None:
        return None
    within = row["chunks"]
    if len(where.values) > 1:
        within = await connection.fetchval(
            database.sql(
                "SELECT coalesce(sum(chunks), 0)::bigint FROM (SELECT d.chunks"
                f" FROM penstock.documents AS d WHERE {where.condition} LIMIT {COUNTED}) AS counted"
            ),
            *where.values,
        )
    return Extent(row["number"], row["chunks"], row["terms"], within, row["total"])
