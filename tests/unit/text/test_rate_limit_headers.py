"""What headers say is left of a provider's limits."""

import pytest

from penstock import runtime
from penstock.text.rate_limit_headers import left_of

NOW = 1_800_000_000.0
OPENAI = {
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1m2.5s",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-tokens": "6m0s",
}
ANTHROPIC = {
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:30Z",
    "anthropic-ratelimit-input-tokens-remaining": "8000",
    "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:01:00Z",
    "anthropic-ratelimit-output-tokens-remaining": "300",
    "anthropic-ratelimit-output-tokens-reset": "2027-01-15T08:00:20Z",
}


@pytest.mark.parametrize(
    ("headers", "left"),
    [
        (OPENAI, (59, 62.5, 149984, 360)),
        (ANTHROPIC, (49, 30, 300, 20)),
        ({"x-ratelimit-remaining-requests": "0"}, (0, 1, -1, 0)),
        (
            {"x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "20ms"},
            (-1, 0, 7, 0.02),
        ),
        ({"ratelimit": '"default";r=50;t=30'}, (50, 30, -1, 0)),
        (
            {
                "ratelimit": '"burst";r=9;t=2, "day";r=4;t=600, "tpm";r=800;t=12',
                "ratelimit-policy": '"burst";q=10;w=2,"day";q=90;w=86400,"tpm";q=900;qu="tokens"',
            },
            (4, 600, 800, 12),
        ),
        ({"ratelimit": '"b";r=9;t=2', "ratelimit-policy": '"b";q=1;qu="content-bytes"'}, None),
        ({"ratelimit": '"b";r=3', "ratelimit-policy": '"b";q=10;w=60'}, (3, 60, -1, 0)),
        ({"ratelimit": "limit=100, remaining=8, reset=50"}, (8, 50, -1, 0)),
        ({"ratelimit-remaining": "5", "ratelimit-reset": "7"}, (5, 7, -1, 0)),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 90)}, (0, 90, -1, 0)),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 15}, (0, 7 * 86400, -1, 0)),
        ({"x-ratelimit-remaining": "many"}, None),
        ({"ratelimit": "what is this;;=,"}, None),
        ({"x-ratelimit-remaining": "nan"}, None),
        ({"content-type": "text/plain"}, None),
        ({}, None),
    ],
)
def test_what_is_left_is_read(
    headers: dict[str, str], left: tuple[float, float, float, float] | None
) -> None:
    with runtime.replaced(now=lambda: NOW):
        assert left_of(headers) == left
