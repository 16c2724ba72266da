"""Search: full text and vectors on one snapshot."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.adapters.sqlite.corpus.documents import CHUNK_COLUMNS, COLUMNS, chunk_of, document_of
from penstock.model.document import Hit
from penstock.ports.corpus import Place, Scope


def scope_terms(tenant: str, collection: str) -> str:
    """What chunks of a collection carry beside their terms, so that the full text index itself
    keeps tenants and collections apart. Hashed: names may hold anything."""
    return f"{_term('t', tenant)} {_term('c', tenant, collection)}"


def _term(kind: str, *names: str) -> str:
    return kind + hashlib.sha256("\0".join(names).encode()).hexdigest()[:20]


def documents_in(connection: sqlite3.Connection, scope: Scope) -> list[int] | None:
    """The numbers of the live documents that a scope names; None: all of the tenant's."""
    if scope.collections is None and scope.documents is None and not scope.metadata:
        return None
    condition, values = "tenant = ? AND live IS NOT NULL", [scope.tenant]
    for column, given in (("collection", scope.collections), ("id", scope.documents)):
        if given is not None:
            condition += f" AND {column} IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(given)))
    for key, value in scope.metadata.items():
        if '"' in key:  # no document has such a key, and a path cannot name it
            return []
        condition += " AND metadata -> ? = json(?)"
        values += [f'$."{key}"', json.dumps(value)]
    rows = connection.execute(f"SELECT number FROM documents WHERE {condition}", values)
    return [number for (number,) in rows]


def by_text(
    connection: sqlite3.Connection,
    scope: Scope,
    terms: Sequence[str],
    documents: Sequence[int] | None,
    limit: int,
) -> list[Hit]:
    """The chunks that have most of the terms, the rare ones first."""
    terms = [term for term in terms if "\0" not in term]
    if not terms or documents == []:
        return []
    names = [_term("t", scope.tenant)]
    if scope.collections is not None:
        names = [_term("c", scope.tenant, one) for one in scope.collections]
    match = f"scope : ({_any(names)}) AND terms : ({_any(terms)})"
    some, parameters = "", [match]
    if documents is not None and (scope.documents is not None or scope.metadata):
        some = (
            " AND rowid IN (SELECT chunks.number FROM json_each(?) AS d JOIN documents"
            " ON documents.number = d.value JOIN chunks ON chunks.document = documents.number"
            " AND chunks.generation = documents.live)"
        )
        parameters.append(json.dumps(list(documents)))
    rows = connection.execute(
        "SELECT rowid, bm25(chunk_terms, 1.0, 0.0) AS score FROM chunk_terms"
        f" WHERE chunk_terms MATCH ?{some} ORDER BY score, rowid LIMIT ?",
        [*parameters, limit],
    )
    return [Hit(number, -score) for number, score in rows]


def _any(terms: Iterable[str]) -> str:
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)


def places(connection: sqlite3.Connection, chunks: Iterable[int]) -> dict[int, Place]:
    columns = ", ".join(f"documents.{name.strip()}" for name in COLUMNS.split(","))
    rows = connection.execute(
        f"SELECT {columns}, {CHUNK_COLUMNS} FROM json_each(?) AS s"
        " JOIN chunks ON chunks.number = s.value"
        " JOIN documents ON documents.number = chunks.document",
        (json.dumps(list(chunks)),),
    )
    width = len(COLUMNS.split(","))
    return {row[width]: _place(row, width) for row in rows}


def _place(row: Sequence[Any], width: int) -> Place:
    return Place(chunk_of(row[width:]), document_of(row[:width]))
