"""A librarian that is lost, full, or none: whoever asks keeps what has come, and is told."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.errors import (
    AuthenticationError,
    LaneBusy,
    RateLimited,
    Unavailable,
    ValidationError,
)
from penstock.librarian.client import RemoteLibrarian
from penstock.model.librarian import LibrarianConfig
from tests.support.counting_server import CountingServer
from tests.support.librarian_callers import Counter, counter_at
from tests.support.librarians import PASSAGE
from tests.support.waiting import until
from tests.support.worker_processes import Farm, WorkerProcess

SOON = 60.0


@pytest.fixture
async def counter(farm: Farm) -> AsyncIterator[Counter]:
    async with counter_at(farm, remote=True) as counter:
        yield counter


def service(counter: Counter) -> WorkerProcess:
    assert counter.process is not None
    return counter.process


def elsewhere(counter: Counter, port: int, **options: Any) -> Counter:
    """The same, but another place is asked."""
    config = LibrarianConfig(address=f"127.0.0.1:{port}", **options)
    counter.librarian = RemoteLibrarian(config, counter.app.queue.now)
    return counter


async def lost(counter: Counter, *steps: str, **options: Any) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        await counter.ask(*steps, **options)
    assert caught.value.lane == "librarian"
    return caught.value


async def in_the_middle(counter: Counter, **options: Any) -> asyncio.Task[Unavailable]:
    """A search that has brought a round and goes on."""
    task = asyncio.create_task(lost(counter, "round", "block", **options))
    await until(lambda: counter.came and counter.diary.notes("waits"), "a round to come")
    return task


async def test_killed_in_the_middle_is_told_at_once_and_what_came_is_kept(
    counter: Counter,
) -> None:
    task = await in_the_middle(counter)
    await service(counter).kill()
    error = await asyncio.wait_for(task, SOON)
    assert error.address == f"127.0.0.1:{counter.port}"
    assert [turn.number for turn in counter.came] == [1]


async def test_after_a_restart_it_is_asked_again(counter: Counter) -> None:
    task = await in_the_middle(counter)
    await service(counter).kill()
    await asyncio.wait_for(task, SOON)
    await counter.serve()

    async def answers() -> bool:
        try:
            return len(await counter.ask("round")) == 1
        except (Unavailable, LaneBusy):  # it did not look again yet; twice opens the breaker
            return False

    await until(answers, "the same client to find it again")


async def test_frozen_in_the_middle_is_noticed_long_before_the_deadline(counter: Counter) -> None:
    elsewhere(counter, counter.port, keepalive_seconds=2.0)
    task = await in_the_middle(counter, seconds=600.0, asking=counter.asking(600.0))
    await service(counter).freeze()
    try:
        await asyncio.wait_for(task, SOON)
    finally:
        service(counter).send(signal.SIGCONT)
    assert [turn.number for turn in counter.came] == [1]


async def test_frozen_until_the_deadline_ends_with_what_has_come(farm: Farm) -> None:
    async with counter_at(farm, remote=True) as counter:
        config = counter.config(keepalive_seconds=60.0)  # so that nobody notices
        counter.librarian = RemoteLibrarian(config, counter.app.queue.now)
        task = asyncio.create_task(counter.ask("round", "block", seconds=12.0))
        await until(lambda: counter.came, "a round to come")
        await service(counter).freeze()
        try:
            assert len(await asyncio.wait_for(task, SOON)) == 1
        finally:
            service(counter).send(signal.SIGCONT)


async def test_frozen_before_it_has_said_a_word_is_lost(counter: Counter) -> None:
    assert len(await counter.ask("round")) == 1
    await service(counter).freeze()
    try:
        await lost(counter, "round", seconds=0.5)
    finally:
        service(counter).send(signal.SIGCONT)


async def test_nobody_there_opens_the_breaker_after_two_have_found_it(counter: Counter) -> None:
    await service(counter).kill()
    async with asyncio.timeout(SOON):
        await lost(counter, "round", seconds=600.0)
        await lost(counter, "round", seconds=600.0)

    async def is_open() -> bool:
        return (await counter.lane()).breaker == "open"

    await until(is_open, "the breaker to open")
    with pytest.raises(LaneBusy, match="librarian is busy: its breaker is open"):
        await counter.ask("round")


async def test_trouble_behind_the_librarian_is_not_its_own(counter: Counter) -> None:
    for _ in range(3):
        with pytest.raises(Unavailable):
            await counter.ask("gone:llm.search")
    with pytest.raises(ValidationError):
        await counter.ask("invalid")
    assert len(await counter.ask("round")) == 1

    async def is_well() -> bool:
        lane = await counter.lane()
        return (lane.breaker, lane.in_flight) == ("closed", 0)

    await until(is_well, "the lane to be as ever")


async def test_port_that_accepts_and_says_nothing_is_lost_by_the_deadline(
    counter: Counter,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        elsewhere(counter, silent.getsockname()[1])
        async with asyncio.timeout(SOON):
            await lost(counter, "round", seconds=1.0)


async def test_something_else_on_the_port_is_lost(counter: Counter, server: CountingServer) -> None:
    elsewhere(counter, server.port)
    await lost(counter, "round")


async def test_bug_in_a_search_is_told_without_what_it_says(counter: Counter) -> None:
    error = await lost(counter, "round", "bug")
    assert "ZeroDivisionError" in str(error)
    assert "secret" not in str(error)
    assert "a secret" in service(counter).log, "it is in the log of the service"
    assert [turn.number for turn in counter.came] == [1]


async def test_round_that_is_too_large_ends_the_search_and_not_the_service(
    counter: Counter,
) -> None:
    await lost(counter, "round", "huge")
    assert len(await counter.ask("big:900")) == 1


async def test_errand_that_is_too_large_is_not_sent(counter: Counter) -> None:
    with pytest.raises(ValidationError, match="characters"):
        await counter.ask("round" * 100_000)
    with pytest.raises(ValidationError, match="same number"):
        await counter.ask("round", found=(PASSAGE, PASSAGE))
    assert counter.diary.notes("began") == []


async def test_full_service_says_when_to_come_back(farm: Farm) -> None:
    async with counter_at(farm, remote=True, max_searches=1) as counter:
        task = await in_the_middle(counter)
        rounds = counter.librarian.search(counter.asking(), counter.errand("round"))
        with pytest.raises(RateLimited, match="1 searches are under way") as full:
            await anext(rounds)
        assert (full.value.lane, full.value.retry_after) == ("librarian", 1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_stop_lets_searches_finish(counter: Counter) -> None:
    task = asyncio.create_task(counter.ask("round", "wait:0.7", "round"))
    await until(lambda: counter.came and counter.diary.notes("waits"), "a round to come")
    service(counter).send(signal.SIGTERM)
    assert len(await asyncio.wait_for(task, SOON)) == 2
    assert await service(counter).exit() == 0


async def test_stop_cuts_what_takes_too_long(farm: Farm) -> None:
    async with counter_at(farm, remote=True, shutdown_seconds=0.3) as counter:
        task = await in_the_middle(counter)
        service(counter).send(signal.SIGTERM)
        await asyncio.wait_for(task, SOON)
        assert await service(counter).exit() == 0
        assert counter.diary.notes("cancelled")


async def test_wrong_token_is_refused_and_the_right_one_is_not(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_TOKEN", "right")
    async with counter_at(farm, remote=True, token_variable="DESK_TOKEN") as counter:
        with pytest.raises(AuthenticationError, match="token") as refused:
            await counter.ask("round")
        assert refused.value.lane == "librarian"
        monkeypatch.setenv("DESK_TOKEN", "wrong")
        with pytest.raises(AuthenticationError, match="token"):
            await elsewhere(counter, counter.port, token_variable="DESK_TOKEN").ask("round")
        assert counter.diary.notes("began") == []
        monkeypatch.setenv("DESK_TOKEN", "right")
        right = elsewhere(counter, counter.port, token_variable="DESK_TOKEN")
        assert len(await right.ask("round")) == 1
