"""Checks the settings: their file, conflicts between them, and the libraries that they need."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from penstock.config import Config, hide_secrets
from penstock.doctor.context import Case, Diagnosis, broken, in_thread, is_secret, ok, warning

SHORT_LEASE, LONG_LEASE = 3.0, 120.0
LONG_POLL = 60.0


async def look_at_config(case: Case) -> list[Diagnosis]:
    return await in_thread(_check_file, case)


def _check_file(case: Case) -> list[Diagnosis]:
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


async def look_at_conflicts(case: Case) -> list[Diagnosis]:
    config = case.config
    one, answers, research = config.engine, config.answers, config.research
    said = [
        (
            one.lease_seconds < SHORT_LEASE,
            f"lease_seconds is {one.lease_seconds:g}: a pause of the machine costs running jobs",
            f"set it to {SHORT_LEASE:g} or more; 15 is usual",
        ),
        (
            one.lease_seconds > LONG_LEASE,
            f"lease_seconds is {one.lease_seconds:g}: what a dead machine held waits that long",
            "set it to 15, however long jobs take: leases are renewed",
        ),
        (
            one.upkeep_seconds > one.lease_seconds,
            f"upkeep_seconds ({one.upkeep_seconds:g}) is longer than a lease",
            "set it to 0.5: it decides how soon the dead are noticed",
        ),
        (
            max(one.poll_seconds, one.reconnect_cap_seconds) > LONG_POLL,
            "poll_seconds or reconnect_cap_seconds is over a minute",
            "shorten it: after a lost wake-up or an outage work resumes only then",
        ),
        (
            one.retry_base_seconds > one.retry_cap_seconds,
            "retry_base_seconds is longer than retry_cap_seconds, which then always holds",
            "make the base the shorter one",
        ),
        (
            answers.search_loop_seconds >= answers.answer_seconds,
            "search_loop_seconds leaves no time of answer_seconds to write the answer",
            "make it half of answer_seconds",
        ),
        (
            answers.answer_seconds > config.server.deadline_seconds,
            "answer_seconds is longer than server.deadline_seconds, after which callers are told "
            "to come back",
            "raise server.deadline_seconds",
        ),
        (
            max(research.provider_seconds, research.page_seconds) > research.search_seconds,
            "provider_seconds or page_seconds is longer than search_seconds, which ends both",
            "raise search_seconds",
        ),
    ]
    bad = [warning("settings", found, advice) for wrong, found, advice in said if wrong]
    return bad or [ok("settings", "no conflicts")]


class Extra(NamedTuple):
    name: str
    modules: tuple[str, ...]
    what: str
    needed: Callable[[Config], bool]


def _uses(*schemes: str) -> Callable[[Config], bool]:
    return lambda config: config.queue.startswith(schemes) or config.store.startswith(schemes)


EXTRAS = (
    Extra("postgres", ("asyncpg",), "PostgreSQL", _uses("postgres:", "postgresql:")),
    Extra("redis", ("redis",), "Redis", _uses("redis:", "rediss:", "unix:", "valkey:")),
    Extra(
        "ingest",
        ("numpy", "pypdfium2"),
        "documents",
        lambda c: "embedder" in c.sources or bool(c.store or c.blobs),
    ),
    Extra("scans", ("PIL",), "scans", lambda c: c.documents.scans != "none"),
    Extra("s3", ("s3fs",), "blobs in S3", lambda c: c.blobs.startswith("s3:")),
    Extra("gcs", ("gcsfs",), "blobs in a bucket", lambda c: c.blobs.startswith("gs:")),
    Extra("names", ("presidio_analyzer",), "names", lambda c: c.names is not None),
    Extra(
        "research",
        ("protego", "trafilatura"),
        "pages of the web",
        lambda c: bool(c.providers or c.browser.engines or c.research.search_providers),
    ),
    Extra("browser", ("playwright",), "browser", lambda c: bool(c.browser.engines)),
    Extra("grpc", ("grpc", "grpc_health"), "librarian", lambda c: "librarian" in c.sources),
    Extra(
        "kafka",
        ("confluent_kafka",),
        "Kafka",
        lambda c: bool(c.intake.kafka.bootstrap or c.intake.kafka.topics),
    ),
    Extra("server", ("fastapi", "uvicorn"), "server", lambda c: "server" in c.sources),
)


async def look_at_extras(case: Case) -> list[Diagnosis]:
    return await in_thread(_check_extras, case.config)


def _check_extras(config: Config) -> list[Diagnosis]:
    needed = [extra for extra in EXTRAS if extra.needed(config)]
    missing = [extra for extra in needed if not all(map(_installed, extra.modules))]
    said = [
        broken(
            "extras",
            f"{one.what} is configured, its libraries are not installed",
            f"pip install 'penstock[{one.name}]'",
        )
        for one in missing
    ]
    models = {} if config.names is None else config.names.models
    said += [
        broken("extras", f"the spaCy model {model!r} is not installed", "install it, or its folder")
        for model in models.values()
        if not _installed(model) and not Path(model).expanduser().is_dir()
    ]
    if said:
        return said
    names = ", ".join(extra.name for extra in needed)
    return [ok("extras", f"installed: {names}" if names else "none is needed")]


def _installed(module: str) -> bool:
    return module.isidentifier() and find_spec(module) is not None
