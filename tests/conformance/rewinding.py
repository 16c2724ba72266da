"""What a store does that has lost its last moments: it gives numbers again. Done to the storage of
each backend, since no port can ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from penstock.model.ids import new_id
from penstock.ports.queue import Member
from tests.conformance.support import Ledger, SqlBackend


def give_to_another_job(ledger: Ledger, job_id: str) -> str:
    """Let the row of a job (its seq, token and holder) be that of another job; its id."""
    another = new_id()
    if isinstance(ledger.backend, SqlBackend):
        ledger.backend.execute(
            ledger.url, "UPDATE penstock.jobs SET id = $1 WHERE id = $2", another, job_id
        )
        return another
    with _redis(ledger) as (server, tag):
        seq = _seq(server, tag, job_id)
        server.zrem(f"{tag}:ids", job_id)
        server.zadd(f"{tag}:ids", {another: seq})
        server.hset(f"{tag}:job:{seq}", "id", another)
    return another


def give_to_another_membership(ledger: Ledger, member: Member) -> None:
    """Let the number of a member be that of another process, with all that is leased to it."""
    another = new_id()
    if isinstance(ledger.backend, SqlBackend):
        change = "UPDATE penstock.processes SET id = $1, life = $2 WHERE id = $3"
        ledger.backend.execute(ledger.url, change, another, f"{another}.life", member.id)
        return
    with _redis(ledger) as (server, tag):
        process = f"{tag}:process:{_number(server, tag, member)}"
        server.hset(process, mapping={"id": another, "life": f"{another}.life"})


def let_another_hold(ledger: Ledger, job_id: str, other: Member) -> None:
    """Let a running job be leased to `other` with the same token, as if it had claimed it first."""
    if isinstance(ledger.backend, SqlBackend):
        number = "(SELECT number FROM penstock.processes WHERE id = $1)"
        ledger.backend.execute(
            ledger.url,
            f"UPDATE penstock.jobs SET holder = {number} WHERE id = $2",
            other.id,
            job_id,
        )
        return
    with _redis(ledger) as (server, tag):
        seq, number = _seq(server, tag, job_id), _number(server, tag, other)
        holder = server.hget(f"{tag}:job:{seq}", "holder")
        server.hset(f"{tag}:job:{seq}", "holder", number)
        server.smove(f"{tag}:held:{holder}", f"{tag}:held:{number}", str(seq))


@contextmanager
def _redis(ledger: Ledger) -> Iterator[tuple[Any, str]]:
    plain, _, namespace = ledger.url.partition("?namespace=")
    with redis.Redis.from_url(plain, decode_responses=True) as server:
        yield server, f"{{{namespace}}}"


def _seq(server: Any, tag: str, job_id: str) -> int:
    return int(server.zscore(f"{tag}:ids", job_id))


def _number(server: Any, tag: str, member: Member) -> str:
    for number in server.zrange(f"{tag}:processes", 0, -1):
        if server.hget(f"{tag}:process:{number}", "id") == member.id:
            return str(number)
    raise AssertionError("no such member")
