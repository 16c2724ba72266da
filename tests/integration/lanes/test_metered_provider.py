"""The provider that the tests of limits ask: it enforces what it says, and tells it."""

from typing import Any

import httpx2
import pytest

from tests.support.metered_provider import Limits, MeteredProvider
from tests.support.meters import Meter, reset_text

LONG = 600.0


def ask(provider: MeteredProvider, **body: object) -> httpx2.Response:
    with httpx2.Client(trust_env=False, verify=False, timeout=30) as client:
        return client.post(provider.url, json={"input_tokens": 0, **body})


def test_each_limit_is_enforced_and_what_is_refused_is_logged() -> None:
    cases: list[tuple[Limits, dict[str, Any], str]] = [
        (Limits(requests=2, seconds=LONG), {}, "requests"),
        (Limits(tokens=30, seconds=LONG), {"input_tokens": 5, "max_tokens": 10}, "tokens"),
        (Limits(input=20, seconds=LONG, window="bucket"), {"input_tokens": 10}, "input"),
        (Limits(output=20, seconds=LONG), {"max_tokens": 10}, "output"),
        (Limits(cost_per_day=0.5), {"model": "large", "max_tokens": 10}, "cost"),
        (Limits(parallel=0), {}, "parallel"),
    ]
    for limits, body, over in cases:
        with MeteredProvider(limits, prices={"large": (0, 25_000)}) as provider:
            statuses = [ask(provider, **body).status_code for _ in range(3)]
        expected = [429] * 3 if over == "parallel" else [200, 200, 429]
        assert statuses == expected, over
        assert [one.over for one in provider.log] == [
            "" if status == 200 else over for status in expected
        ]
        assert max(provider.worst.values(), default=0) <= 1


def test_real_use_counts_from_the_answer_on() -> None:
    with MeteredProvider(Limits(tokens=100, seconds=LONG), dialect="anthropic") as provider:
        first = ask(provider, max_tokens=90, real={"output": 30})
        assert first.json()["usage"] == {"input_tokens": 0, "output_tokens": 30}
        assert first.headers["anthropic-ratelimit-tokens-remaining"] == "70"
        assert first.headers["anthropic-ratelimit-tokens-reset"].endswith("Z")
        assert ask(provider, max_tokens=71).headers["retry-after"] == str(int(LONG))
        provider.limits = Limits(tokens=101, seconds=LONG)
        assert ask(provider, max_tokens=71).status_code == 200


def test_headers_are_those_of_the_dialect() -> None:
    limits = Limits(requests=1, tokens=100, seconds=LONG)
    with MeteredProvider(limits) as provider:
        said = ask(provider, max_tokens=40).headers
    assert (said["x-ratelimit-limit-tokens"], said["x-ratelimit-remaining-tokens"]) == ("100", "60")
    assert said["x-ratelimit-reset-requests"] in ("9m59s", "10m0s", "9m60s")
    with MeteredProvider(limits, dialect="bare") as provider:
        assert not [name for name in ask(provider).headers if "ratelimit" in name]
        assert "retry-after" in ask(provider).headers


def test_it_can_be_down_slow_or_broken() -> None:
    with MeteredProvider(Limits(), latency=lambda there: 0.05 * there) as provider:
        assert ask(provider).elapsed.total_seconds() >= 0.05
        provider.status = 503
        assert ask(provider).status_code == 503
        provider.status = None
        provider.down()
        with pytest.raises(httpx2.ConnectError):
            ask(provider)
        provider.up()
        assert ask(provider).status_code == 200
    assert [one.status for one in provider.log] == [200, 503, 200]


def test_meters_count_windows_and_refills() -> None:
    sliding, bucket = Meter(10, 5.0), Meter(10, 5.0, refills=True)
    for meter in (sliding, bucket):
        entry = meter.take(1.0, 10, 1.0)
        meter.correct(entry, 4)
    assert sliding.wait(2.0, 7) == pytest.approx(4.0)
    assert bucket.wait(2.0, 9) == pytest.approx(0.5)
    assert (sliding.left(6.1), bucket.left(6.1)) == (10, 10)
    assert [reset_text(one) for one in (0.02, 1.0, 360.0)] == ["20ms", "1s", "6m0s"]
