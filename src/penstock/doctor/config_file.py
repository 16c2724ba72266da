"""Checks the config file: where it is, and who else can read its secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.config import hide_secrets
from penstock.doctor.context import Case, in_thread, is_secret
from penstock.doctor.diagnosis import Diagnosis, ok, warning


async def look(case: Case) -> list[Diagnosis]:
    return await in_thread(_look, case)


def _look(case: Case) -> list[Diagnosis]:
    path, config = case.file, case.config
    said = [warning("config", one, "check that this is intended") for one in config.warnings]
    if not path.exists():
        return [ok("config", f"there is no {path}: using defaults and the environment"), *said]
    mode = path.stat().st_mode
    secrets = any(map(is_secret, config.intake.kafka.options)) or _holds_secret(path)
    if secrets and mode & stat.S_IROTH:
        found = f"{path} holds a password, and every user of this machine can read it"
        advice = f"chmod 640 {path}, or give it in the environment instead"
        return [warning("config", found, advice), *said]
    if mode & stat.S_IWOTH:
        found = f"every user of this machine can change {path}"
        return [warning("config", found, f"chmod o-w {path}"), *said]
    return [ok("config", f"{os.path.abspath(path)} is valid"), *said]


def _holds_secret(path: Path) -> bool:
    import yaml

    return any(_in_url(text) for text in _texts(yaml.safe_load(path.read_text())))


def _in_url(text: str) -> bool:
    try:
        return hide_secrets(text) != text
    except ValueError:  # no URL
        return False


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
