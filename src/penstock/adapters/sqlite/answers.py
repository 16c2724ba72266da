"""Answers in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.adapters.sql.answer_rows import (
    COLUMNS,
    WITHOUT_ROUNDS,
    Row,
    answer_of,
    answer_values,
    read_answer,
    saved_answer,
)
from penstock.adapters.sql.task_rows import kept
from penstock.adapters.sqlite.database import Transaction
from penstock.adapters.sqlite.file import SqliteFile
from penstock.adapters.unreachable import reaching_store
from penstock.model.answer import Answer

T = TypeVar("T")

_ONE = f"SELECT {COLUMNS} FROM answers WHERE (tenant, id) = (:tenant, :id)"
_MADE = "SELECT created_at, id FROM answers WHERE (tenant, id) = (:tenant, :before)"
_SAVE = (
    "UPDATE answers SET state = :state, saves = saves + 1, body = :body, rounds = :rounds"
    " WHERE (tenant, id, saves) = (:tenant, :id, :saves) AND state = 'running'"
)


class SqliteAnswers:
    """See `penstock.ports.answers.AnswerStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def _write(self, operation: Callable[[Transaction], T]) -> T:
        with reaching_store():
            return await self._file.write(operation)

    async def _rows(self, statement: str, values: dict[str, Any]) -> list[Row]:
        def read(connection: sqlite3.Connection) -> list[Row]:
            return connection.execute(statement, kept(values)).fetchall()

        with reaching_store():
            return await self._file.read(read)

    async def create(self, answer: Answer) -> Answer:
        def create(tx: Transaction) -> Row:
            tx.execute(
                f"INSERT INTO answers ({COLUMNS}) VALUES (:tenant, :id, :state, :created_at,"
                " :saves, :body, :rounds) ON CONFLICT DO NOTHING",
                values,
            )
            row: Row = tx.execute(_ONE, values).fetchone()
            return row

        values = answer_values(answer)
        return await read_answer(await self._write(create))

    async def get(self, tenant: str, answer: str) -> Answer | None:
        rows = await self._rows(_ONE, {"tenant": tenant, "id": answer})
        return await read_answer(rows[0]) if rows else None

    async def answers(self, tenant: str, limit: int, before: str | None = None) -> list[Answer]:
        older = "" if before is None else f" AND (created_at, id) < ({_MADE})"
        rows = await self._rows(
            f"SELECT {WITHOUT_ROUNDS} FROM answers WHERE tenant = :tenant{older}"
            " ORDER BY created_at DESC, id DESC LIMIT :limit",
            {"tenant": tenant, "before": before, "limit": limit},
        )
        return [answer_of(row) for row in rows]

    async def save(self, answer: Answer) -> Answer | None:
        values = answer_values(answer)
        saved = await self._write(lambda tx: tx.execute(_SAVE, values).rowcount == 1)
        return await saved_answer(values) if saved else None

    async def running(
        self, before: float, limit: int, after: tuple[str, str] | None = None
    ) -> list[Answer]:
        tenant, id_ = after or ("", "")
        rows = await self._rows(
            f"SELECT {WITHOUT_ROUNDS} FROM answers WHERE state = 'running'"
            " AND created_at < :before AND (tenant, id) > (:tenant, :id)"
            " ORDER BY tenant, id LIMIT :limit",
            {"tenant": tenant, "id": id_, "before": before, "limit": limit},
        )
        return [answer_of(row) for row in rows]
