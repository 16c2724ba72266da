"""Answers in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from penstock.adapters.postgres.database import Database, Pool, Transaction
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
from penstock.adapters.unreachable import reaching_store
from penstock.model.answer import Answer

T = TypeVar("T")

_ONE = f"SELECT {COLUMNS} FROM penstock.answers WHERE (tenant, id) = ($1, $2)"
_MADE = "SELECT created_at FROM penstock.answers WHERE (tenant, id) = ($1, $2)"
_SAVE = (
    "UPDATE penstock.answers SET state = $3, saves = saves + 1, body = $5, rounds = $6"
    " WHERE (tenant, id, saves) = ($1, $2, $4) AND state = 'running' RETURNING 1"
)


class PostgresAnswers:
    """See `penstock.ports.answers.AnswerStore`. `pool` is that of the store it is in."""

    def __init__(self, database: Database, pool: Callable[[], Pool]) -> None:
        self._database = database
        self._pool = pool

    async def _write(self, operation: Callable[[Transaction], Awaitable[T]]) -> T:
        with reaching_store():
            return await self._pool().write(operation)

    async def _fetch(self, statement: str, *values: Any) -> list[Row]:
        with reaching_store():
            async with self._pool().connection() as connection:
                rows: list[Row] = await connection.fetch(
                    self._database.sql(statement), *kept(values)
                )
                return rows

    async def create(self, answer: Answer) -> Answer:
        values = answer_values(answer)

        async def create(tx: Transaction) -> Row:
            await tx.execute(
                f"INSERT INTO penstock.answers ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)"
                " ON CONFLICT DO NOTHING",
                *values.values(),
            )
            row: Row = await tx.fetchrow(_ONE, values["tenant"], values["id"])
            return row

        return await read_answer(await self._write(create))

    async def get(self, tenant: str, answer: str) -> Answer | None:
        rows = await self._fetch(_ONE, tenant, answer)
        return await read_answer(rows[0]) if rows else None

    async def answers(self, tenant: str, limit: int, before: str | None = None) -> list[Answer]:
        older = ""
        values: list[Any] = [tenant, limit]
        if before is not None:
            # Not in the statement itself: the index is searched for values only.
            made = await self._fetch(_MADE, tenant, before)
            if not made:
                return []
            older = " AND (created_at, id) < ($3, $4)"
            values += [made[0][0], before]
        rows = await self._fetch(
            f"SELECT {WITHOUT_ROUNDS} FROM penstock.answers WHERE tenant = $1{older}"
            " ORDER BY created_at DESC, id DESC LIMIT $2",
            *values,
        )
        return [answer_of(row) for row in rows]

    async def save(self, answer: Answer) -> Answer | None:
        values = answer_values(answer)
        given = [values[name] for name in ("tenant", "id", "state", "saves", "body", "rounds")]

        async def save(tx: Transaction) -> bool:
            return await tx.fetchrow(_SAVE, *given) is not None

        return await saved_answer(values) if await self._write(save) else None

    async def running(
        self, before: float, limit: int, after: tuple[str, str] | None = None
    ) -> list[Answer]:
        tenant, id_ = after or ("", "")
        rows = await self._fetch(
            f"SELECT {WITHOUT_ROUNDS} FROM penstock.answers WHERE state = 'running'"
            " AND created_at < $1 AND (tenant, id) > ($2, $3) ORDER BY tenant, id LIMIT $4",
            before,
            tenant,
            id_,
            limit,
        )
        return [answer_of(row) for row in rows]
