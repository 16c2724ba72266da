"""Search: full text and vectors on one snapshot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from penstock.model.document import Hit
from penstock.ports.documents import DocumentQuery, Scope
from penstock.retrieval.query import scope_term


def scope_terms(tenant: str, collection: str) -> str:
    """What chunks of a collection carry beside their terms, so that the full text index itself
    keeps tenants and collections apart."""
    return f"{scope_term('tenant', tenant)} {_collection(tenant, collection)}"


def _collection(tenant: str, collection: str) -> str:
    return scope_term("collection", f"{tenant}\0{collection}")


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
        values += [f'$."{key}"', json.dumps(value, ensure_ascii=False)]
    rows = connection.execute(f"SELECT number FROM documents WHERE {condition}", values)
    return [number for (number,) in rows]


def by_text(
    connection: sqlite3.Connection, wanted: DocumentQuery, documents: Sequence[int] | None
) -> list[Hit]:
    """The chunks that have most of the terms, the rare ones counting most."""
    if not wanted.terms or documents == []:
        return []
    scope = wanted.scope
    terms = wanted.choose(*_frequencies(connection, wanted.terms))
    if not terms:
        return []
    match = f"terms : ({_any(terms)})"
    if scope.collections is not None:
        names = [_collection(scope.tenant, one) for one in scope.collections]
        match = f"scope : ({_any(names)}) AND {match}"
    elif not _alone(connection, scope.tenant):
        match = f"scope : {_any([scope_term('tenant', scope.tenant)])} AND {match}"
    some, parameters = "", [match]
    if documents is not None and (scope.documents is not None or scope.metadata):
        # The plus keeps SQLite from asking the index once for each of these rows.
        some = (
            " AND +rowid IN (SELECT chunks.number FROM json_each(?) AS d JOIN documents"
            " ON documents.number = d.value JOIN chunks ON chunks.document = documents.number"
            " AND chunks.generation = documents.live)"
        )
        parameters.append(json.dumps(list(documents)))
    rows = connection.execute(
        "SELECT rowid, bm25(chunk_terms, 0.0, 1.0) AS score FROM chunk_terms"
        f" WHERE chunk_terms MATCH ?{some} ORDER BY score, rowid LIMIT ?",
        [*parameters, wanted.limit],
    )
    return [Hit(number, -score) for number, score in rows]


def _frequencies(
    connection: sqlite3.Connection, terms: Sequence[str]
) -> tuple[dict[str, int], int]:
    """How many chunks hold each term, and how many there are; of all tenants, as the index
    itself reads and weighs."""
    rows = connection.execute(
        "SELECT term, doc FROM chunk_vocabulary WHERE col = 'terms'"
        " AND term IN (SELECT value FROM json_each(?))",
        (json.dumps(list(terms)),),
    )
    (total,) = connection.execute("SELECT count(*) FROM chunk_terms_docsize").fetchone()
    return dict(rows.fetchall()), total


def _alone(connection: sqlite3.Connection, tenant: str) -> bool:
    """Whether nobody else has documents. Then to narrow by tenant would leave nothing out, and
    make the index read an entry for each chunk: with 67,000 a fifth of the time."""
    row = connection.execute(
        "SELECT (SELECT min(tenant) FROM documents), (SELECT max(tenant) FROM documents)"
    ).fetchone()
    return bool(row == (tenant, tenant))


def _any(terms: Iterable[str]) -> str:
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
