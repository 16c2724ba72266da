"""The diagnosis of one part: ok, a warning, broken or skipped, with advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, and somebody should look at it."""
    BROKEN = "broken"
    """It does not work, or may lose what was accepted."""
    SKIPPED = "skipped"
    """Not configured, or it could not be looked at because of another part."""


@dataclass(slots=True, frozen=True)
class Diagnosis:
    part: str
    status: Status
    found: str
    advice: str = ""
    """What to do; empty where nothing is to be done."""


def ok(part: str, found: str) -> Diagnosis:
    return Diagnosis(part, Status.OK, found)


def warning(part: str, found: str, advice: str) -> Diagnosis:
    return Diagnosis(part, Status.WARNING, found, advice)


def broken(part: str, found: str, advice: str) -> Diagnosis:
    return Diagnosis(part, Status.BROKEN, found, advice)


def skipped(part: str, found: str, advice: str = "") -> Diagnosis:
    return Diagnosis(part, Status.SKIPPED, found, advice)


def worst(findings: list[Diagnosis]) -> Status:
    """Of all of them; skipped ones do not count."""
    for status in (Status.BROKEN, Status.WARNING):
        if any(finding.status is status for finding in findings):
            return status
    return Status.OK
