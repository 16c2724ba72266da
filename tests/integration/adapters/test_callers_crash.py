"""SIGKILL between a caller's order, its job and the commit of both."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from penstock import Penstock
from penstock.adapters.postgres.address import parse
from tests.support.postgres import new_url
from tests.support.waiting import until
from tests.support.worker_processes import Farm

KILLS = 3


@pytest.mark.parametrize("way", ["psycopg_connection", "sqlite3_connection"])
@pytest.mark.usefixtures("patient_postgres")
async def test_no_order_without_its_job_and_no_job_without_its_order(
    tmp_path: Path, way: str
) -> None:
    url = new_url() if way.startswith("psycopg") else f"sqlite:///{tmp_path}/jobs.db"
    farm, noted = Farm(tmp_path, url=url), tmp_path / "committed"
    noted.touch()
    async with Penstock(url) as app:
        _ask(url, "CREATE TABLE penstock.orders (number text PRIMARY KEY)")
        for kill in range(1, KILLS + 1):
            # The last one is killed while its transaction is open, the others wherever they are.
            last = kill == KILLS
            options = {"url": url, "way": way, "committed": str(noted)}
            orderer = await farm.run(
                "tests.support.orderer", {**options, "hold_after": 5 if last else None}
            )

            def enough(kill: int = kill, last: bool = last) -> bool:
                told = noted.read_text().split()
                return "held" in told if last else len(told) >= 20 * kill

            await until(enough, "some orders")
            await orderer.kill()
        told = {one for one in noted.read_text().split() if one != "held"}
        jobs = [job.payload["order"] for job in await app.jobs(kind="ship", limit=100_000)]
    orders = {number for (number,) in _ask(url, "SELECT number FROM penstock.orders")}
    assert told <= orders
    assert sorted(jobs) == sorted(orders)
    await farm.close()


def _ask(url: str, statement: str) -> list[tuple[str]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            return file.execute(statement.replace("penstock.", "")).fetchall()
    with psycopg.connect(parse(url).dsn) as server:
        done = server.execute(statement.replace("penstock", parse(url).schema).encode())
        return done.fetchall() if done.description else []
