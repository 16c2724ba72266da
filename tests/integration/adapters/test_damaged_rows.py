"""A row that cannot be read is a dead letter. The others run, and nothing quotes it."""

import json
import logging
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest
import redis

from penstock import JobContext, JobState, Penstock
from penstock.adapters.redis.address import parse
from penstock.model.ids import new_id
from tests.support.database_servers import redis_url
from tests.support.waiting import PATIENCE, until
from tests.support.worker_processes import Farm

COUNT = 200
SECRET = "the-secret"
NO_TEXT = b'{"n":1,"pad":"' + SECRET.encode() + b'\xff\xfe"}'


def register(app: Penstock, ran: set[int], **options: Any) -> None:
    @app.job("work", **options)
    async def work(ctx: JobContext, n: int, pad: str) -> None:
        ran.add(n)


def payloads() -> list[dict[str, Any] | None]:
    return [{"n": n, "pad": SECRET} for n in range(COUNT)]


def damage(farm: Farm, column: str, stored: bytes, ids: list[str]) -> None:
    """Write bytes over a column of these jobs, past all layers."""
    with closing(sqlite3.connect(farm.path)) as connection, connection:
        for job_id in ids:
            changed = connection.execute(
                f"UPDATE jobs SET {column} = CAST(? AS TEXT) WHERE id = ?", (stored, job_id)
            )
            assert changed.rowcount == 1


@pytest.mark.parametrize("lane", [None, "some"])
@pytest.mark.parametrize(
    ("column", "stored"),
    [("payload", NO_TEXT), ("trace", b"\xe4"), ("history", b'[{"attempt": 1, "err\xf0')],
)
async def test_damaged_rows_are_dead_letters_and_all_others_run(
    farm: Farm, caplog: pytest.LogCaptureFixture, column: str, stored: bytes, lane: str | None
) -> None:
    ran: set[int] = set()
    app = farm.bare(lanes={"some": {"min_interval_seconds": 0.0, "max_parallel": 50}})
    register(app, ran, lane=lane)
    async with app:
        jobs = await app.enqueue_many("work", payloads())
        bad = {0, COUNT // 2, COUNT - 1}
        damage(farm, column, stored, [jobs[n].id for n in sorted(bad)])
        # They are seen beside the others, before and after.
        assert len(await app.jobs(limit=COUNT)) == COUNT
        with caplog.at_level(logging.DEBUG):
            async with app.running():
                for n in sorted(set(range(COUNT)) - bad):
                    assert (await app.wait(jobs[n].id, PATIENCE)).state is JobState.COMPLETED
                for n in sorted(bad):
                    dead = await app.wait(jobs[n].id, PATIENCE)
                    assert dead.error is not None
                    assert (dead.state, dead.error["type"]) == (JobState.FAILED, "DamagedRow")
        assert ran == set(range(COUNT)) - bad
        letters = await app.dead_letters()
        assert {one.id for one in letters} == {jobs[n].id for n in bad}
        json.dumps([one.as_dict() for one in letters], ensure_ascii=False).encode()
        assert SECRET not in caplog.text + "".join(str(one.error) for one in letters)
        # Redriven they are dead letters again, unless it was their past that was damaged.
        left = 0 if column == "history" else len(bad)
        assert await app.redrive() == len(bad)
        async with app.running():
            await app.drain(PATIENCE)
        assert await app.discard() == left


@pytest.mark.parametrize("stored", [b'{"n": 1, "pad', b"[1]"])
async def test_payload_that_is_no_json_fails_alone(farm: Farm, stored: bytes) -> None:
    ran: set[int] = set()
    app = farm.bare(max_retries=0)
    register(app, ran)
    async with app:
        jobs = await app.enqueue_many("work", payloads())
        damage(farm, "payload", stored, [jobs[7].id])
        async with app.running():
            await app.drain(PATIENCE)
        assert ran == set(range(COUNT)) - {7}
        (dead,) = await app.dead_letters()
        assert dead.id == jobs[7].id


async def test_unreadable_deadline_row_holds_up_no_other(farm: Farm) -> None:
    """What the queue does to many rows at once does not stop at one of them."""
    app = farm.bare()
    register(app, set())
    async with app:
        deadline = time.time() + 2
        jobs = await app.enqueue_many("work", payloads(), deadline=deadline)
        damage(farm, "history", b"[{", [jobs[3].id])
        await until(lambda: time.time() > deadline, "their time to be over")
        async with app.running():
            for job in jobs:
                assert (await app.wait(job.id, PATIENCE)).state.finished


@pytest.mark.parametrize("flavour", ["redis", "valkey"])
async def test_damaged_payload_on_redis_fails_alone(flavour: str) -> None:
    url = f"{redis_url(flavour)}?namespace={new_id()}"
    ran: set[int] = set()
    app = Penstock(url, durable=False)
    register(app, ran)
    async with app:
        jobs = await app.enqueue_many("work", payloads())
        with redis.Redis.from_url(redis_url(flavour)) as server:
            tag = parse(url).tag
            (seq,) = [
                key for key, text in server.hgetall(f"{tag}:payloads").items() if b'"n":7,' in text
            ]
            server.hset(f"{tag}:payloads", seq, NO_TEXT)
        assert len(await app.jobs(limit=COUNT)) == COUNT
        async with app.running():
            await app.drain(PATIENCE)
        (dead,) = await app.dead_letters()
        assert dead.error is not None
        assert (dead.id, dead.error["type"]) == (jobs[7].id, "DamagedRow")
        json.dumps(dead.as_dict(), ensure_ascii=False).encode()
        assert ran == set(range(COUNT)) - {7}
