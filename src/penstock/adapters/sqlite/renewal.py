"""Renewing leases from any thread, over a connection of their own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from penstock import runtime
from penstock.adapters.sqlite.database import explain
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.sqlite.transaction import sql, transaction
from penstock.ports.queue import Lease


class Renewal:
    """Extends the lease of one membership. `renew` blocks."""

    def __init__(self, file: SqliteFile, number: int, member: str, lease_seconds: float) -> None:
        self._file = file
        self._number, self._member = number, member
        self._lease_seconds = lease_seconds
        self._connection: sqlite3.Connection | None = None

    def renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool:
        """False: the membership lapsed."""
        try:
            if self._connection is None:
                self._connection = self._file.connect()
            return self._renew(self._connection, status, holds)
        except sqlite3.Error as error:
            self.close()
            raise explain(error, self._file.path) from error

    def _renew(
        self, connection: sqlite3.Connection, status: Mapping[str, Any], holds: Sequence[Lease]
    ) -> bool:
        with transaction(connection):
            now = runtime.now()
            renewed = connection.execute(
                sql("renew"),
                {
                    "member": self._number,
                    "id": self._member,
                    "now": now,
                    "lease_until": now + self._lease_seconds,
                    "status": json.dumps(dict(status)),
                },
            ).rowcount
            if holds and renewed:
                batch = json.dumps([lease.ref for lease in holds])
                until = now + self._lease_seconds
                hold = {"batch": batch, "until": until, "now": now}
                connection.execute(sql("hold"), hold)
        return renewed == 1

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
