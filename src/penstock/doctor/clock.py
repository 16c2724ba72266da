"""Compares this machine's clock with a server's."""

from __future__ import annotations

from penstock.adapters.database_facts import ClockSkew
from penstock.doctor.diagnosis import Diagnosis, ok, warning

MAX_SECONDS = 1.0


def judge_clock(part: str, clock: ClockSkew) -> Diagnosis:
    """Jobs go by the server's clock, so a wrong one here hurts only whoever compares times:
    `run_at` and deadlines of callers, logs, and people."""
    name = f"{part} clock"
    if abs(clock.seconds) > MAX_SECONDS + clock.error:
        side = "behind" if clock.seconds > 0 else "ahead of"
        found = f"this machine's is {abs(clock.seconds):.1f} s {side} the server's"
        advice = "set both by NTP (`timedatectl set-ntp true`, chrony)"
        return warning(name, found, advice)
    return ok(name, f"within {MAX_SECONDS:g} s of this machine's")
