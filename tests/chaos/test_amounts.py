"""A provider that counts tokens, for minutes: never above its limits, on any queue."""

from pathlib import Path

import pytest

from tests.support.spending import LIMITS, PARALLEL, SIZES, spend
from tests.support.token_provider import TokenProvider

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(900)]

QUEUES = ["sqlite", "postgres", "redis", "valkey"]
WINDOW = 6.0


@pytest.mark.parametrize("refills", [False, True], ids=["sliding", "bucket"])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("queue", QUEUES)
async def test_provider_that_counts_tokens_refuses_nothing(
    tmp_path: Path, queue: str, limits: str, refills: bool
) -> None:
    async with TokenProvider(WINDOW, LIMITS[limits], refills) as provider:
        count = await spend(tmp_path, queue, provider, windows=6.0)
    print(f"{queue}: {provider.share():.0%} of what is allowed was used, {provider.late} late")
    assert (provider.refused, len(provider.requests)) == (0, count)
    assert max(provider.worst.values()) <= 1e-3


@pytest.mark.parametrize("queue", QUEUES)
async def test_bounds_that_are_too_low_overshoot_by_the_error_in_flight_at_most(
    tmp_path: Path, queue: str
) -> None:
    async with TokenProvider(WINDOW, {"tokens": 60_000}, trusts=True) as provider:
        count = await spend(tmp_path, queue, provider, windows=6.0, real=(1.0, 3.0))
    print(f"{queue}: {provider.worst['tokens']:,.0f} tokens over")
    assert len(provider.requests) == count
    assert provider.worst["tokens"] <= PARALLEL * 2 * max(SIZES)
