"""Text read from scanned pages, kept while their document is being processed."""

from __future__ import annotations

import json

from penstock.adapters.postgres.database import Connection, Database, Transaction
from penstock.adapters.postgres.documents.versions import lock
from penstock.ports.documents import ScannedPage, Version


async def read(
    database: Database, connection: Connection, version: Version, basis: str
) -> dict[int, ScannedPage] | None:
    """In one statement, so that no newer version comes in between."""
    rows = await connection.fetch(
        database.sql(
            "SELECT s.page, s.text, s.masked FROM penstock.documents AS d LEFT JOIN penstock.scans"
            " AS s ON s.document = d.number AND s.basis = $5"
            " WHERE (d.tenant, d.collection, d.id) = ($1, $2, $3) AND d.generation = $4"
        ),
        *version.ref,
        version.generation,
        basis,
    )
    if not rows:
        return None
    return {
        row["page"]: ScannedPage(row["text"], json.loads(row["masked"]))
        for row in rows
        if row["page"] is not None
    }


async def put(tx: Transaction, version: Version, basis: str, page: int, read: ScannedPage) -> bool:
    row = await lock(tx, version)
    if row is None:
        return False
    await tx.execute(
        "INSERT INTO penstock.scans VALUES ($1, $2, $3, $4, $5) ON CONFLICT (document, page)"
        " DO UPDATE SET basis = excluded.basis, text = excluded.text, masked = excluded.masked",
        row["number"],
        page,
        basis,
        read.text,
        json.dumps(dict(read.masked)),
    )
    return True
