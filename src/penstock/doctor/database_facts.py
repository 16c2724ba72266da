"""Judges what databases report: their schema version and their clock."""

from __future__ import annotations

from penstock.adapters.database_facts import ClockSkew, Schema
from penstock.doctor.diagnosis import Diagnosis, broken, ok, warning


def judge_schema(part: str, schema: Schema) -> Diagnosis:
    """Compare the schema version with the one this code needs."""
    name = f"{part} schema"
    if schema.missing:
        return ok(name, "does not exist yet: the first process creates it")
    if schema.too_new:
        found = f"version {schema.version} needs a newer Penstock: this one knows {schema.known}"
        return broken(name, found, "upgrade Penstock on this machine")
    if schema.older:
        found = f"version {schema.version}; this Penstock migrates it to {schema.known}"
        advice = "back it up, then start a process of this version, which migrates it"
        return warning(name, found, advice)
    if schema.version > schema.known:
        found = f"version {schema.version} is newer than this Penstock, which can still use it"
        return warning(name, found, "finish the upgrade: replace the processes of this version")
    return ok(name, f"version {schema.version}, the newest this Penstock knows")


MAX_SECONDS = 1.0


def judge_clock(part: str, clock: ClockSkew) -> Diagnosis:
    """Compare the clocks. Jobs use the server's, so a wrong local clock only affects times that
    callers compute (`run_at`, deadlines), logs, and people."""
    name = f"{part} clock"
    if abs(clock.seconds) > MAX_SECONDS + clock.error:
        side = "behind" if clock.seconds > 0 else "ahead of"
        found = f"this machine's is {abs(clock.seconds):.1f} s {side} the server's"
        advice = "set both by NTP (`timedatectl set-ntp true`, chrony)"
        return warning(name, found, advice)
    return ok(name, f"within {MAX_SECONDS:g} s of this machine's")
