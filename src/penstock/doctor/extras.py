"""Checks that the libraries of configured features are installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from penstock.config import Config
from penstock.doctor.context import Case, in_thread
from penstock.doctor.diagnosis import Diagnosis, broken, ok


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


async def look(case: Case) -> list[Diagnosis]:
    return await in_thread(_look, case.config)


def _look(config: Config) -> list[Diagnosis]:
    needed = [extra for extra in EXTRAS if extra.needed(config)]
    missing = [extra for extra in needed if not all(map(_installed, extra.modules))]
    said = [
        broken(
            "extras", f"{one.what} is configured, its libraries are not installed", _install(one)
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


def _install(extra: Extra) -> str:
    return f"pip install 'penstock[{extra.name}]'"
