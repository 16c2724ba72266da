"""What every store promises of API keys and idempotent requests."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.sql.access import AccessStore
from penstock.errors import ValidationError
from penstock.model.access import (
    Action,
    ActionOutcome,
    Beginning,
    Begun,
    Conflict,
    Done,
    KeyScope,
    hash_of,
    new_key,
)
from penstock.model.ids import new_id
from tests.conformance.access_support import (
    BODY,
    ROUTE,
    abandon,
    access_at,
    begin,
    begun,
    finish,
    going_on,
    release,
)
from tests.support import forks
from tests.support.waiting import PATIENCE, PAUSE

REPO = Path(__file__).parents[3]


@pytest.fixture
async def access(store_name: str, url: str) -> AsyncIterator[AccessStore]:
    async with access_at(store_name, url) as access:
        yield access


@pytest.fixture
async def other(store_name: str, url: str, access: AccessStore) -> AsyncIterator[AccessStore]:
    """The same store, as another process has it."""
    async with access_at(store_name, url) as other:
        yield other


async def add(access: AccessStore, name: str = "ci", tenant: str = "default") -> str:
    """A key's secret."""
    key, secret = new_key(name, tenant=tenant)
    await access.add_key(key, hash_of(secret.reveal()))
    return secret.reveal()


class Requester:
    """A process that begins requests, once it is told to, and dies; see `requester`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *arguments: str) -> "Requester":
        process = await asyncio.create_subprocess_exec(
            *forks.command("tests.conformance.requester", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=REPO,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        return cls(process)

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")

    async def begun(self) -> list[int]:
        """For each key, once it is dead, whether it was the one to begin."""
        out, _ = await self._process.communicate()
        assert self._process.returncode == -9
        return [int(word) for word in out.split()]


# Keys


async def test_a_key_is_found_by_the_hash_of_its_secret_only(access: AccessStore) -> None:
    key, secret = new_key("ci", tenant="kim", scopes=[KeyScope.ADMIN], requests_per_minute=7)
    await access.add_key(key, hash_of(secret.reveal()))
    found = await access.key_by_hash(hash_of(secret.reveal()))
    assert found is not None
    assert (found.id, found.tenant, found.name) == (key.id, "kim", "ci")
    assert (found.scopes, found.requests_per_minute) == (frozenset({KeyScope.ADMIN}), 7)
    assert await access.key_by_hash(hash_of(secret.reveal()[:-1])) is None
    assert await access.key_by_hash(secret.reveal()) is None
    assert await access.key_by_hash(key.id) is None


async def test_a_revoked_key_is_good_for_nothing_and_kept(
    access: AccessStore, other: AccessStore
) -> None:
    secret = await add(access)
    (key,) = await access.keys()
    revoked = await other.revoke(key.id)
    assert revoked is not None
    assert revoked.revoked_at is not None
    assert await access.key_by_hash(hash_of(secret)) is None
    again = await access.revoke(key.id)
    assert again is not None
    assert again.revoked_at == revoked.revoked_at
    assert await access.keys() == [again]
    assert await access.revoke("none") is None


async def test_keys_of_one_tenant_or_all_the_newest_first(access: AccessStore) -> None:
    for name, tenant in (("a", "kim"), ("b", "lee"), ("c", "kim")):
        await add(access, name, tenant)
    assert [key.name for key in await access.keys()] == ["c", "b", "a"]
    assert [key.name for key in await access.keys("kim")] == ["c", "a"]
    assert await access.keys("none") == []


async def test_the_last_use_of_a_key_is_noted(access: AccessStore, other: AccessStore) -> None:
    secret = await add(access)
    assert [key.last_used_at for key in await access.keys()] == [None]
    used = await access.key_by_hash(hash_of(secret))
    assert used is not None
    assert used.last_used_at == pytest.approx(time.time(), abs=60)
    again = await other.key_by_hash(hash_of(secret))  # within a minute: nothing is written
    assert again == used
    assert await other.keys() == [used]


# Requests


async def test_the_first_request_begins_and_the_like_are_told_its_id(
    access: AccessStore, other: AccessStore
) -> None:
    assert await begin(access, request="r1") == begun("r1")
    assert await begin(access, request="r2") == going_on("r1")
    assert await begin(other, request="r3") == going_on("r1")


async def test_an_answer_is_given_again_byte_by_byte(
    access: AccessStore, other: AccessStore
) -> None:
    await begin(access)
    body, headers = bytes(range(256)), [("set-cookie", "a"), ("set-cookie", "b"), ("x", "é")]
    assert await access.finish("default", ROUTE, "k", "r1", 201, headers, body)
    assert await begin(other, request="r2") == Done(201, tuple(headers), body)


async def test_an_empty_answer_is_an_answer(access: AccessStore) -> None:
    await begin(access)
    assert await access.finish("default", ROUTE, "k", "r1", 204, [], b"")
    assert await begin(access, request="r2") == Done(204, (), b"")


async def test_another_body_under_the_same_key_is_a_conflict_at_any_time(
    access: AccessStore,
) -> None:
    await begin(access, lease=0.0)  # over already, and still the key of that body
    assert await begin(access, request="r2", body="other") == Conflict()
    assert await begin(access, request="r3", lease=60.0) == begun("r1")
    assert await begin(access, request="r4", body="other") == Conflict()
    await finish(access, request="r3")
    assert await begin(access, request="r5", body="other") == Conflict()


async def test_an_abandoned_key_is_free_also_for_another_body(access: AccessStore) -> None:
    await begin(access)
    assert await abandon(access)
    assert await begin(access, request="r2", body="other") == begun("r2")


async def test_a_released_key_is_taken_over_at_once_under_the_same_id(access: AccessStore) -> None:
    await begin(access)
    assert await release(access)
    assert await begin(access, request="r2", body="other") == Conflict()
    assert await begin(access, request="r3") == begun("r1")
    assert not await release(access)


async def test_a_forgotten_key_is_a_new_one(access: AccessStore) -> None:
    await begin(access)
    await finish(access)
    assert await access.purge(time.time() + 600) == 1
    assert await begin(access, request="r2", body="other") == begun("r2")


async def test_tenants_and_routes_are_apart(access: AccessStore) -> None:
    await begin(access)
    assert await begin(access, request="r2", tenant="kim") == begun("r2")
    assert await begin(access, request="r3", route="POST /v1/documents") == begun("r3")
    assert not await finish(access, tenant="kim")  # r1 is not kim's
    assert await finish(access, request="r2", tenant="kim", body=b"of kim")
    assert await begin(access, request="r4") == going_on("r1")
    assert await begin(access, request="r5", tenant="lee", body="other") == begun("r5")


async def test_of_many_at_once_exactly_one_begins(access: AccessStore, other: AccessStore) -> None:
    for n in range(20):
        outcomes = await asyncio.gather(
            *(begin((access, other)[i % 2], f"k{n}", f"r{i}") for i in range(8))
        )
        (first,) = [i for i, one in enumerate(outcomes) if isinstance(one, Begun)]
        others = [one for i, one in enumerate(outcomes) if i != first]
        assert others == [going_on(f"r{first}")] * 7


async def test_of_many_that_take_over_exactly_one_does(
    access: AccessStore, other: AccessStore
) -> None:
    for n in range(20):
        await begin(access, f"k{n}", "lost", lease=0.0)
        outcomes = await asyncio.gather(
            *(begin((access, other)[i % 2], f"k{n}", f"r{i}") for i in range(8))
        )
        (first,) = [i for i, one in enumerate(outcomes) if one == begun("lost")]
        others = [one for i, one in enumerate(outcomes) if i != first]
        assert others == [going_on(f"r{first}", "lost")] * 7


async def test_of_several_processes_exactly_one_begins_each_request(
    store_name: str, url: str, access: AccessStore
) -> None:
    keys = [f"k{n}" for n in range(50)]
    processes = [
        await Requester.start(store_name, url, f"process{n}", "60", *keys) for n in range(3)
    ]
    for process in processes:
        process.go()
    flags = [await process.begun() for process in processes]
    assert [sum(each) for each in zip(*flags, strict=True)] == [1] * len(keys)
    for n, key in enumerate(keys):
        winner = next(i for i, each in enumerate(flags) if each[n])
        assert await begin(access, key, "late") == going_on(f"process{winner}")


async def test_a_request_whose_server_died_is_taken_over_after_its_lease(
    store_name: str, url: str, access: AccessStore
) -> None:
    process = await Requester.start(store_name, url, "dead", "1.0", "k")
    started = time.monotonic()
    process.go()
    assert await process.begun() == [1]
    outcomes: list[Beginning] = []
    give_up = time.monotonic() + PATIENCE
    while not outcomes or outcomes[-1] == going_on("dead"):
        assert time.monotonic() < give_up
        outcomes.append(await begin(access, request="r2"))
        await asyncio.sleep(PAUSE)
    assert outcomes[-1] == begun("dead")
    assert time.monotonic() - started > 0.9  # not before


async def test_whoever_was_taken_over_cannot_end_the_request(
    access: AccessStore, other: AccessStore
) -> None:
    await begin(access, lease=0.0)
    assert await begin(other, request="r2") == begun("r1")
    assert not await finish(access, request="r1", body=b"late")
    assert not await abandon(access, request="r1")
    assert not await release(access, request="r1")
    assert await begin(access, request="r3") == going_on("r2", "r1")
    assert await finish(other, request="r2", body=b"right")
    assert await begin(access, request="r4") == Done(202, (("location", "/x"),), b"right")


async def test_a_late_request_that_nobody_took_over_still_ends(access: AccessStore) -> None:
    await begin(access, lease=0.0)
    assert await finish(access)
    assert isinstance(await begin(access, request="r2"), Done)


async def test_what_is_answered_stays_so(access: AccessStore) -> None:
    await begin(access, lease=0.0)
    assert await finish(access, body=b"first")
    assert not await finish(access, body=b"second")
    assert not await abandon(access)
    assert await begin(access, request="r2") == Done(202, (("location", "/x"),), b"first")


async def test_ending_what_was_never_begun_changes_nothing(access: AccessStore) -> None:
    assert not await finish(access)
    assert not await abandon(access)
    assert await begin(access) == begun("r1")


async def test_purge_forgets_what_was_answered_or_lost_before(access: AccessStore) -> None:
    now = time.time()
    await begin(access, "answered")
    await finish(access, "answered")
    await begin(access, "lost", lease=0.0)
    await begin(access, "running", lease=1200.0)
    assert await access.purge(now - 600) == 0
    assert isinstance(await begin(access, "answered", "r2"), Done)
    assert await access.purge(now + 600) == 2
    assert await begin(access, "answered", "r3", body="other") == begun("r3")
    assert await begin(access, "lost", "r3", body="other") == begun("r3")
    assert await begin(access, "running", "r3") == going_on("r1")


async def test_purge_forgets_more_than_one_batch(access: AccessStore) -> None:
    for first in range(0, 2100, 100):
        await asyncio.gather(
            *(begin(access, f"k{n}", lease=0.0) for n in range(first, first + 100))
        )
    assert await access.purge(time.time() + 600) == 2100


@pytest.mark.parametrize("key", ["", "x" * 256, "line\nbreak", "nul\x00"])
async def test_a_key_that_cannot_be_stored_is_refused(access: AccessStore, key: str) -> None:
    with pytest.raises(ValidationError, match="Idempotency-Key"):
        await begin(access, key)


async def test_the_longest_names_are_stored(access: AccessStore) -> None:
    widest = "\N{GRINNING FACE}"
    key, tenant, route = widest * 255, widest * 240, "POST /v1/documents/{id}/retry"
    assert await access.begin(tenant, route, key, BODY, "r1", "of r1") == begun("r1")
    assert await access.begin(tenant, route, key, BODY, "r2", "of r2") == going_on("r1")


def action(tenant: str = "default", at: float = 0.0, **values: Any) -> Action:
    told: dict[str, Any] = {
        "key_id": "key",
        "key_name": "kim's laptop",
        "action": "lane.pause",
        "subject": "openalex",
        "detail": {"changed": 3, "ids": ["a", "b"]},
        "outcome": ActionOutcome.DONE,
    }
    return Action(id=new_id(), at=at or time.time(), tenant=tenant, **{**told, **values})


async def test_actions_are_kept_and_read_newest_first(
    access: AccessStore, other: AccessStore
) -> None:
    made = [action("a"), action("b", key_id=None, key_name=""), action("a", subject="日本 'x'")]
    for one in made:
        await access.record(one)

    assert await other.actions(10) == made[::-1]
    assert await other.actions(10, tenant="a") == [made[2], made[0]]
    assert await other.actions(1) == made[2:]
    assert await other.actions(10, before=made[2].id) == [made[1], made[0]]
    assert await other.actions(10, before=made[2].id, tenant="a") == [made[0]]
    assert await other.actions(10, tenant="nobody") == []


async def test_the_end_of_an_action_takes_the_place_of_its_beginning(access: AccessStore) -> None:
    begun = action(outcome=ActionOutcome.BEGUN, detail={})
    await access.record(begun)
    assert await access.actions(10) == [begun]
    ended = replace(begun, outcome=ActionOutcome.FAILED, subject="?", detail={"code": "not-found"})
    await access.record(ended)
    assert await access.actions(10) == [ended]


async def test_old_actions_are_forgotten(access: AccessStore) -> None:
    now = time.time()
    old, new = action(at=now - 100), action(at=now)
    await access.record(old)
    await access.record(new)

    assert await access.purge_actions(now - 50) == 1
    assert await access.actions(10) == [new]
    assert await access.purge_actions(now - 50) == 0
