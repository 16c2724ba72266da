"""The ledger: what is told once counts once, whoever tells it, and on the day it began."""

import asyncio
from typing import Any

from penstock.ports.ledger import DAY, Charge, Payer, UsageQuery, UsageSum, day_name
from penstock.ports.queue import JobQueue
from tests.conformance.support import LONG, Ledger

TODAY = 20_000
ANNA = Payer("anna", "research:1", "a1", "search")


def charge_of(name: str, *, payer: Payer = ANNA, day: int = TODAY, **values: Any) -> Charge:
    given: dict[str, Any] = {"lane": "llm", "model": "small", "tokens": 100, "cost": 500}
    given |= {"input_tokens": 70, "output_tokens": 30, **values}
    return Charge(name, day * DAY + 60.0, payer, **given)


def reserved(name: str, **values: Any) -> Charge:
    return charge_of(
        name, **{"tokens": 1000, "input_tokens": 200, "output_tokens": 800, **values}
    )._replace(cost=values.get("cost", 9000), reserved=True)


def void(name: str) -> Charge:
    return charge_of(name)._replace(void=True)


async def sums(queue: JobQueue, **query: Any) -> list[UsageSum]:
    return await queue.usage(UsageQuery(**query))


async def total(queue: JobQueue, **query: Any) -> UsageSum:
    (one,) = await sums(queue, by="tenant", **query)
    return one


async def test_what_is_told_twice_counts_once(queue: JobQueue) -> None:
    await queue.charge([charge_of("1"), charge_of("1"), charge_of("2")])
    await queue.charge([charge_of("1", tokens=7), reserved("2")])
    assert await total(queue) == UsageSum("anna", 2, 200, 140, 60, 1000, 0, 0)


async def test_two_that_tell_the_same_at_once_count_once(ledger: Ledger, queue: JobQueue) -> None:
    other = await ledger.open()
    some = [charge_of(str(n)) for n in range(50)]
    await asyncio.gather(*(one.charge(some) for one in (queue, other, queue, other)))
    assert (await total(queue)).requests == 50
    assert (await total(queue)).tokens == 5000


async def test_a_reservation_is_settled_on_the_day_it_was_made(queue: JobQueue) -> None:
    await queue.charge([reserved("1"), reserved("2")], soft=True)
    assert await total(queue) == UsageSum("anna", 2, 2000, 400, 1600, 18000, 0, 2)
    await queue.charge([charge_of("1", day=TODAY + 1, model="large")])
    assert await sums(queue, by="day") == [UsageSum(day_name(TODAY), 2, 1100, 270, 830, 9500, 0, 1)]
    assert [(one.name, one.reserved) for one in await sums(queue, by="model")] == [
        ("small", 1),
        ("large", 0),
    ]


async def test_a_request_that_was_not_made_is_not_charged(queue: JobQueue) -> None:
    await queue.charge([reserved("1")])
    await queue.charge([void("1"), void("2")])
    assert await sums(queue) == []
    await queue.charge([void("1")])
    await queue.charge([reserved("3"), void("3")])
    assert await sums(queue) == []


async def test_a_batch_may_reserve_and_settle(queue: JobQueue) -> None:
    await queue.charge([reserved("1"), charge_of("1", day=TODAY + 1), reserved("1")])
    assert await sums(queue, by="day") == [UsageSum(day_name(TODAY), 1, 100, 70, 30, 500, 0, 0)]


async def test_an_unknown_price_is_not_nothing(queue: JobQueue) -> None:
    await queue.charge([charge_of("1", cost=None), charge_of("2"), charge_of("3", cost=0)])
    assert await total(queue) == UsageSum("anna", 3, 300, 210, 90, 500, 1, 0)
    ((name, *_, cost, unpriced, _),) = await sums(queue, by="job")
    assert (name, cost, unpriced) == ("a1", 500, 1)


async def test_sums_by_everything(queue: JobQueue) -> None:
    bert = Payer("bert", "answer:2", "b1", "ask")
    await queue.charge(
        [
            charge_of("1", day=TODAY - 1),
            charge_of("2", payer=ANNA._replace(job="a2"), lane="embedder", cost=100),
            charge_of("3", payer=bert, model="large", cost=7000),
        ]
    )
    names = {
        by: [one.name for one in await sums(queue, by=by)]
        for by in ("day", "tenant", "task", "job", "kind", "lane", "model")
    }
    assert names == {
        "day": [day_name(TODAY), day_name(TODAY - 1)],
        "tenant": ["bert", "anna"],
        "task": ["answer:2", "research:1"],
        "job": ["b1", "a1", "a2"],
        "kind": ["ask", "search"],
        "lane": ["llm", "embedder"],
        "model": ["large", "small"],
    }


async def test_a_tenant_sees_its_own_and_days_can_be_chosen(queue: JobQueue) -> None:
    bert = Payer("bert")
    days = [TODAY - 1, TODAY, TODAY + 1]
    await queue.charge([charge_of(f"a{day}", day=day) for day in days])
    await queue.charge([charge_of(f"b{day}", day=day, payer=bert) for day in days])
    for by in ("day", "task", "job", "model"):
        mine = await sums(queue, by=by, tenant="bert", since=TODAY, until=TODAY)
        assert [one.requests for one in mine] == [1]
    assert [one.name for one in await sums(queue, by="tenant", tenant="bert")] == ["bert"]
    assert await sums(queue, tenant="nobody") == []


async def test_single_charges_are_forgotten_and_sums_of_days_stay(ledger: Ledger) -> None:
    queue = await ledger.open(usage_retention_seconds=DAY)
    member = await ledger.join(queue, lease_seconds=LONG)
    now = int(queue.now() // DAY)
    await queue.charge([charge_of("old", day=now - 3), charge_of("new", day=now)])
    await member.upkeep()
    assert [one.requests for one in await sums(queue, by="job")] == [1]
    assert [one.requests for one in await sums(queue, by="day")] == [1, 1]
