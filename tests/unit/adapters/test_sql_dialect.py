"""Named statements: one text, read by both databases."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from penstock.adapters.sql.dialect import Sql, for_sqlite, include, load, numbered
from penstock.adapters.sqlite.transaction import SqliteSql, run


def test_sqlite_reads_a_statement_without_namespace_casts_and_locks() -> None:
    text = "SELECT a FROM penstock.t WHERE :x::text IS NULL OR b = :x FOR UPDATE SKIP LOCKED"
    assert for_sqlite(text) == "SELECT a FROM t WHERE :x IS NULL OR b = :x"


def test_sqlite_tests_membership_in_json() -> None:
    assert for_sqlite("id = ANY (:ids)") == "id IN (SELECT value FROM json_each(:ids))"


def test_sqlite_takes_the_clock_as_a_value() -> None:
    assert for_sqlite("at < penstock.clock() - 5") == "at < :clock - 5"


def test_postgres_numbers_values_by_their_first_use() -> None:
    text = "SELECT :b::float8, :a, :b"
    assert numbered(text) == ("SELECT $1::float8, $2, $1", ("b", "a"))


def test_a_text_includes_others_by_name() -> None:
    assert include("SELECT {all}", {"all": "{one}, b", "one": "a"}) == "SELECT a, b"


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_both_databases_have_the_same_shared_statements(dialect: str) -> None:
    assert load(dialect).keys() == load("sqlite").keys()


def _tx() -> SqliteSql:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b)")
    return SqliteSql(connection, 12.5)


def test_an_operation_runs_to_its_end_on_sqlite() -> None:
    async def operation(tx: Sql) -> list[int]:
        await tx.execute_many(
            "INSERT INTO penstock.t VALUES (:a, :b)", [{"a": n, "b": [n]} for n in range(3)]
        )
        assert await tx.execute("UPDATE penstock.t SET b = :b", b=1) == 3
        assert await tx.one("SELECT a FROM penstock.t WHERE a = 9") is None
        rows = await tx.fetch("SELECT a FROM penstock.t WHERE a = ANY (:some)", some=[0, 2])
        return [row["a"] for row in rows]

    assert run(operation(_tx())) == [0, 2]


def test_an_operation_that_waits_for_something_else_is_an_error() -> None:
    with pytest.raises(AssertionError, match="cannot wait"):
        run(asyncio.sleep(0))
