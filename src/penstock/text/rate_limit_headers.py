"""Parses what the headers of an answer say is left of a provider's limits: requests, and tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from penstock import runtime
from penstock.text.retry_after import MAX_RETRY_AFTER

Left = tuple[float, float]
"""How many are left, and for how many seconds."""
UNSAID: Left = (-1.0, 0.0)
SOON = 1.0
"""Seconds until there are more, where it is not said."""
EPOCHS = 1e9
"""A larger number is a time, not a number of seconds."""

_REQUESTS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("x-rate-limit-remaining", "x-rate-limit-reset"),
)
_TOKENS = (
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
)
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)")
_ITEM = re.compile(r'^"?([^";]*)"?((?:\s*;.*)?)$')
_PARAMETER = re.compile(r';\s*([a-z]+)\s*=\s*"?([^";]*)"?')


def left_of(headers: Mapping[str, str]) -> tuple[float, float, float, float] | None:
    """Requests left and for how many seconds, tokens left and for how many seconds: of each the
    limit that has least left. Below 0: nothing is said of it. None: of neither."""
    requests, tokens = list(_named(headers, _REQUESTS)), list(_named(headers, _TOKENS))
    for unit, left in _fields(headers):
        (tokens if "token" in unit else requests).append(left)
    if not requests and not tokens:
        return None
    return (*min(requests, default=UNSAID), *min(tokens, default=UNSAID))


def _named(headers: Mapping[str, str], names: tuple[tuple[str, str], ...]) -> Iterator[Left]:
    for remaining, reset in names:
        count = _number(headers.get(remaining))
        if count is not None:
            yield count, _seconds(headers.get(reset))


def _fields(headers: Mapping[str, str]) -> Iterator[tuple[str, Left]]:
    """What `RateLimit` says, as the draft of the IETF has it now (`"name";r=50;t=30`) and had it
    before (`limit=100, remaining=50, reset=30`), each with its unit."""
    items = headers.get("ratelimit", "")
    if "remaining=" in items.replace(" ", ""):
        said = dict(part.strip().split("=", 1) for part in items.split(",") if "=" in part)
        count = _number(said.get("remaining"))
        if count is not None:
            yield "requests", (count, _seconds(said.get("reset")))
        return
    policies = dict(_items(headers.get("ratelimit-policy", "")))
    for name, said in _items(items):
        policy, count = policies.get(name, {}), _number(said.get("r"))
        unit = policy.get("qu", "requests")
        if count is not None and (unit == "requests" or "token" in unit):
            yield unit, (count, _seconds(said.get("t") or policy.get("w")))


def _items(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    for item in text.split(","):
        if found := _ITEM.match(item.strip()):
            yield found[1], dict(_PARAMETER.findall(found[2]))


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return math.floor(number) if 0 <= number < 1e15 else None


def _seconds(text: str | None) -> float:
    """From a number of seconds, a time since the epoch, `6m0.5s`, or `2026-01-01T12:00:00Z`."""
    text = (text or "").strip()
    seconds = _number(text)
    if seconds is not None:
        seconds = float(text) if seconds < EPOCHS else seconds - runtime.now()
    elif spans := _SPAN.findall(text):
        seconds = sum(float(count) * _UNITS[unit] for count, unit in spans)
    else:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return SOON
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        seconds = at.timestamp() - runtime.now()
    return min(max(0.0, seconds), MAX_RETRY_AFTER)
