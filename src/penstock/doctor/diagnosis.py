"""The diagnosis of one part: ok, a warning, broken or skipped, with advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Works, but needs a look."""
    BROKEN = "broken"
    """Does not work, or may lose accepted work."""
    SKIPPED = "skipped"
    """Not configured, or not checked because of another component."""


@dataclass(slots=True, frozen=True)
class Diagnosis:
    part: str
    status: Status
    found: str
    advice: str = ""
    """What to do; empty if nothing is needed."""


def ok(part: str, found: str) -> Diagnosis:
    return Diagnosis(part, Status.OK, found)


def warning(part: str, found: str, advice: str) -> Diagnosis:
    return Diagnosis(part, Status.WARNING, found, advice)


def broken(part: str, found: str, advice: str) -> Diagnosis:
    return Diagnosis(part, Status.BROKEN, found, advice)


def skipped(part: str, found: str, advice: str = "") -> Diagnosis:
    return Diagnosis(part, Status.SKIPPED, found, advice)


def worst(findings: list[Diagnosis]) -> Status:
    """Return the worst level; skipped components do not count."""
    for status in (Status.BROKEN, Status.WARNING):
        if any(finding.status is status for finding in findings):
            return status
    return Status.OK
