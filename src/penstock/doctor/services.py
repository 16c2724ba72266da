"""Checks the librarian, the browser, search providers, Kafka, and the port of the HTTP server."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from contextlib import AbstractAsyncContextManager

from penstock.config import Config, hide_secrets
from penstock.doctor.context import Case, in_thread
from penstock.doctor.diagnosis import Diagnosis, broken, ok, skipped, warning
from penstock.errors import AuthenticationError, ConfigError, PenstockError
from penstock.model.intake import KafkaConfig
from penstock.model.providers import ADDRESSES, ProviderConfig
from penstock.model.server import ServerConfig

ANSWER_SECONDS = 5.0

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (to ask, not to listen)


async def look_at_librarian(case: Case) -> list[Diagnosis]:
    config = case.config.librarian
    if config.address is None:
        return [skipped("librarian", "each process that answers searches by itself")]
    try:
        from penstock.librarian.client import RemoteLibrarian
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("penstock"):
            raise
        return [skipped("librarian", "its library is not installed", "see extras")]
    try:
        librarian = RemoteLibrarian(config, time.time)
        try:
            await librarian.check(ANSWER_SECONDS)
        finally:
            await librarian.close()
    except ConfigError as error:
        return [broken("librarian", str(error), "correct it where this process runs")]
    except AuthenticationError as error:
        advice = f"set {config.token_variable or 'token_variable'} to the same token on both sides"
        return [broken("librarian", str(error), advice)]
    except PenstockError as error:
        advice = "start `penstock librarian` there, or leave out librarian.address"
        return [broken("librarian", str(error), advice)]
    return [ok("librarian", f"{config.address} is ready, and takes what it is shown")]


async def look_at_browser(case: Case) -> list[Diagnosis]:
    config = case.config.browser
    if not config.engines:
        return [skipped("browser", "no search engine is read in one")]
    from penstock.adapters.browser.chromium import Browser

    browser = Browser(config, _no_proxy)
    try:
        browser.check()
        program = browser.executable()
    except ConfigError as error:
        return [broken("browser", str(error), "install what is missing")]
    process = await asyncio.create_subprocess_exec(
        program,
        "--version",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            said, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        found = f"{program} does not tell its version within {ANSWER_SECONDS:g} s"
        return [broken("browser", found, "run it by hand to see what is missing")]
    if process.returncode != 0:
        found = f"{program} does not run (exit code {process.returncode})"
        return [broken("browser", found, f"run `{program} --version` to see what is missing")]
    return [ok("browser", f"{program}, {said.decode(errors='replace').strip()}")]


def _no_proxy() -> AbstractAsyncContextManager[str]:
    raise AssertionError("the doctor opens no page")


async def look_at_providers(case: Case) -> list[Diagnosis]:
    config = case.config
    asked, contact = config.research.search_providers, config.outbound.contact
    names = [one for one in asked or ADDRESSES if one in ADDRESSES and _address(config, one)]
    if not asked and not config.providers and not contact:
        return [skipped("search providers", "nothing is configured for them")]
    said = [finding for name in names if (finding := _key(name, config)) is not None]
    if not contact:
        found = "`contact` is not set: providers and web servers are not told who asks"
        said.append(warning("search providers", found, "set `contact` to a mail or web address"))
    if case.network:
        said += await asyncio.gather(*(_reach(name, config) for name in names))
    elif not said:
        found = f"{', '.join(names)}: configured, not asked"
        said.append(ok("search providers", f"{found} (--network does)"))
    return said


def _address(config: Config, name: str) -> str | None:
    return config.providers.get(name, ProviderConfig()).base_url or ADDRESSES[name]


def _key(name: str, config: Config) -> Diagnosis | None:
    part, variable = f"provider {name}", config.providers.get(name, ProviderConfig()).api_key
    if variable is not None and not os.environ.get(variable, "").strip():
        found = f"{variable}, which is to hold its key, is not set"
        return broken(part, found, f"set {variable} for every worker process")
    if variable is None and name == "openalex" and _address(config, name) == ADDRESSES[name]:
        found = "it has no key, without which OpenAlex answers few requests a day"
        return warning(part, found, "set providers.openalex.api_key to the variable that holds one")
    return None


async def _reach(name: str, config: Config) -> Diagnosis:
    import httpx2

    address = _address(config, name)
    assert address is not None
    part, place = f"provider {name}", hide_secrets(address)
    async with httpx2.AsyncClient(timeout=ANSWER_SECONDS) as client:
        try:
            # Any answer will do: the root of an API often has none but 404.
            answer = await client.get(address)
        except httpx2.HTTPError as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            found = f"{place} cannot be reached ({what})"
            return broken(part, found, "look at the network and at proxies")
    if answer.status_code >= 500:
        return warning(part, f"{place} answers {answer.status_code}", "wait; its lane waits, too")
    return ok(part, f"{place} can be reached")


async def look_at_kafka(case: Case) -> list[Diagnosis]:
    config = case.config.intake.kafka
    if not config.bootstrap and not config.topics:
        return [skipped("kafka", "no requests are taken in from it")]
    try:
        return await in_thread(_check_topics, config)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("penstock"):
            raise
        return [skipped("kafka", "its library is not installed", "see extras")]


def _check_topics(config: KafkaConfig) -> list[Diagnosis]:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from penstock.intake.client import for_others, made, options, reason

    try:
        admin = made(AdminClient, for_others(options(config)))
    except ConfigError as error:
        return [broken("kafka", str(error), "correct the section intake.kafka")]
    try:
        found = admin.list_topics(timeout=ANSWER_SECONDS)
    except KafkaException as error:
        said = f"{config.bootstrap} does not answer ({reason(error)})"
        return [broken("kafka", said, "start it, or correct bootstrap and options")]
    produced = [] if config.produce is None else [config.produce]
    there = {name for name, topic in found.topics.items() if topic.error is None}
    if not config.topics and not produced:
        return [broken("kafka", "no topic is named to read", "set intake.kafka.topics")]
    if missing := [name for name in (*config.topics, *produced) if name not in there]:
        said = f"there is no topic {', '.join(missing)}"
        return [broken("kafka", said, "make it, or correct intake.kafka.topics and produce")]
    if config.dead_letter_topic not in there:
        # A broker may make it by itself with the first dead letter, or refuse.
        said = f"there is no topic {config.dead_letter_topic} for what cannot be carried out"
        return [
            warning("kafka", said, "make it: without it one such message holds up its partition")
        ]
    used = [f"reads {', '.join(config.topics)}"] * bool(config.topics)
    used += [f"passes uploads on to {config.produce}"] * bool(produced)
    return [ok("kafka", f"{len(found.brokers)} brokers, {', '.join(used)}")]


async def look_at_server(case: Case) -> list[Diagnosis]:
    config = case.config.server
    place = f"{config.host}:{config.port}"
    trouble = await in_thread(_trouble, config)
    if trouble is None:
        return [ok("server", f"{place} is free")]
    if trouble.errno != errno.EADDRINUSE:
        found = f"it cannot listen on {place}: {trouble.strerror}"
        return [broken("server", found, "correct server.host and server.port")]
    if await _is_ours(config):
        return [ok("server", f"a Penstock serves on {place}")]
    found, advice = f"another program listens on {place}", "end it, or set server.port to another"
    if "server" in case.config.sources:
        return [broken("server", found, advice)]
    return [warning("server", found, advice)]


def _trouble(config: ServerConfig) -> OSError | None:
    """Explain why a program cannot listen there; None if it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error
    return None


async def _is_ours(config: ServerConfig) -> bool:
    import httpx2

    host = _ANYWHERE.get(config.host, config.host)
    shown = f"[{host}]" if ":" in host else host
    async with httpx2.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False) as client:
        try:
            answer = await client.get(f"http://{shown}:{config.port}/healthz")
            return bool(answer.json() == {"status": "ok"})
        except (httpx2.HTTPError, ValueError):
            return False
