"""Runs all checks concurrently, each with a time limit; a failure of one hides no other.

A new check is a function in `CHECKS`, which has the order of the report.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from penstock.config import DEFAULT_FILE, load
from penstock.doctor import databases, disk, documents, models, services, settings
from penstock.doctor import queue as work
from penstock.doctor.context import Case, DiskLimits
from penstock.doctor.diagnosis import Diagnosis, broken, skipped
from penstock.errors import ConfigError

CHECK_SECONDS = 8.0
"""Longer than the 5 s after which servers are given up elsewhere, whose errors are more precise."""
HIDDEN = "***"


async def examine(
    queue: str | None = None,
    file: str | None = None,
    *,
    network: bool = False,
    disk: DiskLimits | None = None,
) -> list[Diagnosis]:
    """Run all checks on a configuration. Never raises for what they find."""
    path = Path(file or os.environ.get("PENSTOCK_CONFIG") or DEFAULT_FILE)
    try:
        config = load({"queue": queue}, file=file)
    except ConfigError as error:
        return [
            broken("config", str(error), "correct it; `penstock config` shows what is valid"),
            skipped("everything else", "skipped: the settings are invalid"),
        ]
    case = Case(config, path, network, disk or DiskLimits())
    return await run(case, CHECKS)


async def run(
    case: Case, checks: Sequence[Check], *, seconds: float = CHECK_SECONDS
) -> list[Diagnosis]:
    """Return what `checks` find, in their order."""
    found = await asyncio.gather(*(_bounded(check, case, seconds) for check in checks))
    return _without_secrets([one for findings in found for one in findings], case.secrets())


async def _bounded(check: Check, case: Case, seconds: float) -> list[Diagnosis]:
    try:
        async with asyncio.timeout(seconds):
            return await check.look(case)
    except TimeoutError:
        return [
            broken(
                check.part,
                f"no answer within {seconds:g} s",
                "check the network, the disk and the server it uses",
            )
        ]
    except Exception as error:  # a mistake of the check: said, and no other check suffers
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        return [broken(check.part, f"check failed: {what}", "fix the cause of the error")]


def _without_secrets(findings: list[Diagnosis], secrets: Iterable[str]) -> list[Diagnosis]:
    """Remove secrets from messages of drivers and servers, which may quote them."""
    for secret in sorted({one for one in secrets if one}, key=len, reverse=True):
        findings = [
            replace(
                one,
                found=one.found.replace(secret, HIDDEN),
                advice=one.advice.replace(secret, HIDDEN),
            )
            for one in findings
        ]
    return findings


class Check(NamedTuple):
    part: str
    """Component to report as broken if the check itself fails."""
    look: Callable[[Case], Awaitable[list[Diagnosis]]]


CHECKS = (
    Check("config", settings.look_at_config),
    Check("settings", settings.look_at_conflicts),
    Check("extras", settings.look_at_extras),
    Check("queue", databases.look_at_queue),
    Check("store", databases.look_at_store),
    Check("data folders", disk.look),
    Check("blobs", documents.look_at_blobs),
    Check("embedder", documents.look_at_embedder),
    Check("scans", documents.look_at_scans),
    Check("models", models.look),
    Check("librarian", services.look_at_librarian),
    Check("browser", services.look_at_browser),
    Check("search providers", services.look_at_providers),
    Check("kafka", services.look_at_kafka),
    Check("server", services.look_at_server),
    Check("work", work.look),
)
