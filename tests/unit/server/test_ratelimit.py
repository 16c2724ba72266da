"""The limiter of API keys: never more than burst and rate, and never less for long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.server.ratelimit import MINUTE, SECOND, Limit, RateLimiter


class Clock:
    """Nanoseconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 10**15

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limiter(clock: Clock) -> RateLimiter:
    return RateLimiter(clock=clock)


LIMITS = st.integers(1, 10_000).flatmap(
    lambda per_minute: st.builds(Limit, st.just(per_minute), st.integers(1, min(per_minute, 50)))
)
PAUSES = st.lists(
    st.one_of(st.just(0), st.integers(1, 1000), st.integers(0, 3 * MINUTE)), max_size=200
)


def test_a_burst_at_once_then_one_for_each_interval(limiter: RateLimiter, clock: Clock) -> None:
    limit = Limit(per_minute=60, burst=3)
    assert [limiter.take("a", limit).allowed for _ in range(5)] == [True] * 3 + [False] * 2
    clock.now += SECOND
    assert [limiter.take("a", limit).allowed for _ in range(2)] == [True, False]
    clock.now += 100 * SECOND
    assert [limiter.take("a", limit).allowed for _ in range(5)] == [True] * 3 + [False] * 2


def test_keys_do_not_count_for_each_other(limiter: RateLimiter) -> None:
    limit = Limit(60, 1)
    assert limiter.take("a", limit).allowed
    assert limiter.take("b", limit).allowed
    assert not limiter.take("a", limit).allowed


def test_what_is_refused_is_not_counted(limiter: RateLimiter, clock: Clock) -> None:
    limit = Limit(60, 1)
    limiter.take("a", limit)
    for _ in range(100):
        assert not limiter.take("a", limit).allowed
    clock.now += SECOND
    assert limiter.take("a", limit).allowed


def test_headers_say_what_is_left_and_when_there_is_more(
    limiter: RateLimiter, clock: Clock
) -> None:
    limit = Limit(per_minute=6, burst=2)  # one in ten seconds
    policy = '"key";q=6;w=60'
    assert limiter.take("a", limit).headers() == {
        "RateLimit-Policy": policy,
        "RateLimit": '"key";r=1;t=10',
    }
    clock.now += 4 * SECOND
    assert limiter.take("a", limit).headers()["RateLimit"] == '"key";r=0;t=6'
    clock.now += SECOND // 2
    assert limiter.take("a", limit).headers() == {
        "RateLimit-Policy": policy,
        "RateLimit": '"key";r=0;t=6',  # 5.5 s, and not too early
        "Retry-After": "6",
    }


def test_a_raised_limit_counts_at_once(limiter: RateLimiter, clock: Clock) -> None:
    slow, fast = Limit(per_minute=1, burst=1), Limit(per_minute=60, burst=1)
    assert limiter.take("a", slow).allowed
    assert limiter.take("a", slow).retry_after == 60
    assert limiter.take("a", fast).retry_after == 1
    clock.now += SECOND
    assert limiter.take("a", fast).allowed


def test_memory_is_bounded_and_the_busy_are_remembered(clock: Clock) -> None:
    limiter, limit = RateLimiter(most_keys=3, clock=clock), Limit(60, 1)
    for key in "abc":
        assert limiter.take(key, limit).allowed
    assert not limiter.take("a", limit).allowed  # used last, so b goes first
    assert limiter.take("d", limit).allowed
    assert not limiter.take("a", limit).allowed
    assert limiter.take("b", limit).allowed


@pytest.mark.parametrize("burst", [0, -1, 61])
def test_a_burst_is_from_one_to_a_minutes_worth(burst: int) -> None:
    with pytest.raises(ValueError, match="burst is from 1 to 60"):
        Limit(60, burst)


@given(LIMITS, PAUSES)
def test_in_no_stretch_of_time_more_than_burst_and_rate(limit: Limit, pauses: list[int]) -> None:
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    allowed = []
    for pause in pauses:
        clock.now += pause
        if limiter.take("a", limit).allowed:
            allowed.append(clock.now)
    for first, start in enumerate(allowed):
        for last, end in enumerate(allowed[first:], first):
            most = limit.burst * MINUTE + limit.per_minute * (end - start)
            assert (last - first + 1) * MINUTE <= most


@given(LIMITS, PAUSES)
def test_what_is_said_of_the_next_requests_is_true(limit: Limit, pauses: list[int]) -> None:
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    remaining = limit.burst
    for pause in pauses:
        clock.now += pause
        said = limiter.take("a", limit)
        assert said.allowed == (said.retry_after is None)
        assert 0 <= said.remaining < limit.burst
        remaining = said.remaining
    for _ in range(remaining):
        assert limiter.take("a", limit).allowed
    refused = limiter.take("a", limit)
    assert not refused.allowed
    assert refused.retry_after is not None
    clock.now += refused.retry_after * SECOND
    assert limiter.take("a", limit).allowed


@given(LIMITS)
def test_a_minute_of_intervals_has_no_more_than_the_limit(limit: Limit) -> None:
    assert limit.per_minute * limit.interval >= MINUTE


@given(LIMITS, st.integers(1, 100))
def test_one_at_a_time_at_the_rate_is_never_refused(limit: Limit, count: int) -> None:
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    for _ in range(count):
        assert limiter.take("a", limit).allowed
        clock.now += limit.interval
