"""How much may be queued, in all and of one tenant."""

from typing import Any

import pytest

from penstock.api.queue_depth import Depth


@pytest.fixture(autouse=True)
def _looks_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the machine stands still between two questions."""
    monkeypatch.setattr("penstock.api.queue_depth.LOOK_SECONDS", 600.0)


class Queue:
    """Counts how often it is asked, and of whom."""

    def __init__(self, **queued: int) -> None:
        self.tenants = queued
        self.asked: list[str | None] = []

    async def queued(self, tenant: str | None = None) -> int:
        self.asked.append(tenant)
        return sum(self.tenants.values()) if tenant is None else self.tenants.get(tenant, 0)


class App:
    def __init__(self, queue: Queue) -> None:
        self.queue: Any = queue


def depth_of(queue: Queue, most: int, per_tenant: int | None = None) -> Depth:
    return Depth(App(queue), most, per_tenant)  # type: ignore[arg-type]


async def test_a_tenant_that_has_filled_its_share_leaves_room_for_others() -> None:
    depth = depth_of(Queue(bob=10, alice=1), 100, 10)
    assert await depth.full("bob") == (
        "10 jobs of this tenant are queued, and 10 is the limit of a tenant"
    )
    assert await depth.full("alice") is None
    assert await depth.full("carol") is None


async def test_all_together_have_a_limit() -> None:
    depth = depth_of(Queue(a=3, b=3, c=3), 10, 4)
    assert await depth.full("d") is None
    assert await depth.full("d") == "10 jobs are queued, and 10 is the limit"


async def test_what_is_let_pass_counts_until_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(bob=8, alice=2)
    depth = depth_of(queue, 100, 10)
    assert [await depth.full("bob") is None for _ in range(4)] == [True, True, False, False]
    assert queue.asked == [None, "bob"], "one look of each"
    queue.tenants["bob"] = 0
    monkeypatch.setattr("penstock.api.queue_depth.time.monotonic", lambda: float("inf"))
    assert await depth.full("bob") is None


async def test_a_tenant_is_not_counted_while_none_can_have_too_many() -> None:
    queue = Queue(bob=5, alice=4)
    depth = depth_of(queue, 100, 10)
    assert await depth.full("bob") is None
    assert queue.asked == [None]
