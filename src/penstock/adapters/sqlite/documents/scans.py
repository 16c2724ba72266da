"""Text read from scanned pages, kept while their document is being processed."""

from __future__ import annotations

import json
import sqlite3

from penstock.adapters.sqlite.database import Transaction
from penstock.adapters.sqlite.documents.versions import number_of
from penstock.ports.documents import ScannedPage, Version


def read(
    connection: sqlite3.Connection, version: Version, basis: str
) -> dict[int, ScannedPage] | None:
    document = number_of(connection, version)
    if document is None:
        return None
    rows = connection.execute(
        "SELECT page, text, masked FROM scans WHERE document = ? AND basis = ?", (document, basis)
    )
    return {page: ScannedPage(text, json.loads(masked)) for page, text, masked in rows}


def put(tx: Transaction, version: Version, basis: str, page: int, read: ScannedPage) -> bool:
    document = number_of(tx, version)
    if document is None:
        return False
    tx.execute(
        "INSERT INTO scans VALUES (?, ?, ?, ?, ?) ON CONFLICT (document, page) DO UPDATE"
        " SET basis = excluded.basis, text = excluded.text, masked = excluded.masked",
        (document, page, basis, read.text, json.dumps(dict(read.masked))),
    )
    return True
