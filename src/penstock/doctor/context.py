"""The configuration to check, and a time limit for checks that may block."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.config import Config
from penstock.model.llm import LlmConfig, ModelConfig

T = TypeVar("T")
SQLITE = "sqlite:///"


class DiskLimits(NamedTuple):
    """Free disk space, in bytes, below which the doctor complains."""

    warning: int = 2_000_000_000
    broken: int = 200_000_000
    """A few uploads and the log of a SQLite file take this much in a minute."""


DISK = DiskLimits()


@dataclass(slots=True, frozen=True)
class Case:
    """The configuration to check, and which checks are allowed."""

    config: Config
    file: Path
    """Path of the config file, which need not exist."""
    network: bool = False
    """Whether to contact external services that cost money or count requests."""
    disk: DiskLimits = DISK

    @property
    def store(self) -> str | None:
        """The URL of the store; None if the queue cannot be one and no other is configured."""
        url = self.config.store or self.config.queue
        return url if url.startswith(("sqlite:", "postgresql:", "postgres:")) else None

    @property
    def blobs(self) -> Path | None:
        """The directory of the originals; None if they are in a bucket, or there is none."""
        blobs, store = self.config.blobs, self.store
        if blobs:
            return None if "://" in blobs else Path(blobs).expanduser().absolute()
        if store is None or not store.startswith(SQLITE):
            return None
        return Path(f"{store.removeprefix(SQLITE)}-blobs").expanduser().absolute()

    def secrets(self) -> Iterator[str]:
        """Secret values that must not appear in the report, in every form they might take."""
        config = self.config
        models: list[LlmConfig | ModelConfig] = [config.llm, *config.llm.models.values()]
        urls = [config.queue, config.store, config.blobs]
        urls += [config.embedder.base_url or "", *(model.base_url or "" for model in models)]
        urls += [provider.base_url or "" for provider in config.providers.values()]
        for url in urls:
            yield from _secrets_of(url)
        variables = [config.embedder.key_variable, config.librarian.token_variable]
        variables += [model.key_variable for model in models]
        variables += [provider.api_key for provider in config.providers.values()]
        variables += config.intake.kafka.option_variables.values()
        options = config.intake.kafka.options.items()
        yield from (str(value) for name, value in options if is_secret(name))
        for variable in variables:
            if variable is not None and os.environ.get(variable):
                yield os.environ[variable].strip()


def _secrets_of(url: str) -> Iterator[str]:
    with contextlib.suppress(ValueError):  # no URL: then the part that uses it says so
        parts = urlsplit(url)
        if parts.password:
            yield parts.password
            yield unquote(parts.password)
        for name, value in parse_qsl(parts.query):
            if is_secret(name):
                yield value


def is_secret(name: str) -> bool:
    """Whether a value of this name must not be shown. The path of a file may be."""
    words = ("pass", "secret", "token", "key")
    return any(word in name.lower() for word in words) and not name.endswith(".location")


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run `function` in a thread that nobody joins, so that a hanging file system does not keep the
    doctor from exiting."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():  # the doctor has gone on without it
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast(T, result))

    def run() -> None:
        result, problem = None, None
        try:
            result = function(*arguments)
        except BaseException as error:
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=run, name="penstock-doctor", daemon=True).start()
    return await future
