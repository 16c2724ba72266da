"""A provider that counts tokens, for minutes: never above its limits on any queue, and used."""

import time
from pathlib import Path

import pytest

from tests.support.metered_provider import MeteredProvider
from tests.support.spending import (
    APART,
    TOGETHER,
    enqueue_halves,
    error_in_flight,
    lane_of,
    limits_of,
    look_on,
    requests_of,
    share_used,
    spend,
    spenders,
    start,
)

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(900)]

QUEUES = ["sqlite", "postgres", "redis", "valkey"]
TOKENS, WINDOW, WINDOWS = 200_000, 6.0, 5


@pytest.mark.parametrize("window", ["sliding", "bucket"])
@pytest.mark.parametrize("meters", [TOGETHER, APART], ids=["together", "apart"])
@pytest.mark.parametrize("queue", QUEUES)
async def test_provider_that_counts_tokens_refuses_nothing_and_is_used(
    tmp_path: Path, queue: str, meters: tuple[str, ...], window: str
) -> None:
    limits = limits_of(TOKENS, meters, WINDOW, window)
    with MeteredProvider(limits) as provider:
        requests = requests_of(provider, (WINDOWS + 3) * TOKENS)
        async with spenders(tmp_path, queue, lane_of(limits)) as (farm, app):
            await enqueue_halves(app, requests)
            began, had = time.monotonic(), time.process_time()
            await start(farm)
            seen = await look_on(provider, WINDOWS)
    used = share_used(provider, seen, WINDOWS)
    busy = (time.process_time() - had) / (time.monotonic() - began)
    print(f"{queue}: {used:.0%} used, {provider.late} late, the provider took {busy:.0%} of a core")
    assert provider.refused == []
    assert max(provider.worst.values()) <= 1 + 1e-6
    assert used >= 0.75, "0.9 on a machine that has nothing else to do: see the benchmark"


@pytest.mark.parametrize("queue", QUEUES)
async def test_bounds_that_are_too_low_overshoot_by_the_error_in_flight_and_lose_nothing(
    tmp_path: Path, queue: str
) -> None:
    limits = limits_of(60_000, TOGETHER, WINDOW, "sliding")
    with MeteredProvider(limits, refuses=False) as provider:
        count = await spend(tmp_path, queue, provider, windows=4.0, real=(1.0, 3.0))
    over = (provider.worst["tokens"] - 1) * 60_000
    print(f"{queue}: {over:,.0f} tokens over")
    assert len(provider.log) == count
    assert over <= error_in_flight(provider.log, lag=WINDOW / 6)
