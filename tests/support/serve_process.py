"""`penstock serve` in a process of its own, and a client for it."""

from __future__ import annotations

import json
import signal
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from tests.support.cli import Cli, Done, Running, wait_until
from tests.support.config_file import config_text
from tests.support.embedder import EmbedderServer

PATIENCE = 60.0


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients on loopback: a context of their own, with all certificates, takes 20 ms to make."""


class Served:
    """A server that was started."""

    def __init__(self, running: Running) -> None:
        self.running = running
        wait_until(lambda: '"started"' in running.out, f"the server: {running.err}", PATIENCE)
        self.url = str(json.loads(running.out.splitlines()[0])["address"])

    def client(self, key: str | None = None, **options: Any) -> httpx.AsyncClient:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        options.setdefault("timeout", PATIENCE)
        options.setdefault("verify", NO_TLS)
        return httpx.AsyncClient(base_url=self.url, headers=headers, **options)

    def send(self, number: signal.Signals) -> None:
        self.running.send(number)

    def stop(self, timeout: float = PATIENCE) -> Done:
        self.send(signal.SIGTERM)
        return self.running.end(timeout)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.running.process.wait(PATIENCE)


class Host:
    """Starts servers on one queue, with an embedder on loopback behind them."""

    def __init__(self, cli: Cli, embedder: EmbedderServer) -> None:
        self.cli = cli
        self.embedder = embedder
        self.settings: dict[str, Any] = {}
        """The `server` section."""
        self.others: dict[str, Any] = {}
        """Other settings of the config file."""

    def serve(
        self, *arguments: str, app: str | None = "shop:app", port: int = 0, **settings: Any
    ) -> Served:
        """Start a server and wait until it listens."""
        config = self.config(**settings)
        target = [] if app is None else [app]
        options = ["--port", str(port), "--json", "--config", config]
        return Served(self.cli.start("serve", *target, *options, *arguments))

    def config(self, **settings: Any) -> str:
        """The config file, written anew."""
        path = self.cli.folder / "penstock.yaml"
        embedder = {
            "provider": "openai",
            "base_url": self.embedder.url("/v1"),
            "model": "toy",
            "dimensions": 8,
        }
        whole = {
            "embedder": embedder,
            "server": {**self.settings, **settings},
            "question_seconds": PATIENCE,
            **self.others,
        }
        path.write_text(config_text(whole))
        return str(path)

    def key(
        self, name: str = "test", *, tenant: str = "default", scopes: str = "read write"
    ) -> str:
        """The secret of a new key."""
        arguments = [part for scope in scopes.split() for part in ("--scope", scope)]
        done = self.cli("keys", "create", name, "--tenant", tenant, *arguments, "--json")
        return str(done.json["secret"])


@dataclass(slots=True, frozen=True)
class Event:
    name: str
    data: Any
    id: str | None


async def events(response: httpx.Response) -> AsyncIterator[Event]:
    """The events of a stream, as they come; comments are passed over."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield Event(
                fields.get("event", "message"), json.loads(fields["data"]), fields.get("id")
            )
            fields = {}


def upload(**files: bytes) -> list[tuple[str, tuple[str, bytes]]]:
    """Files of a form, by name."""
    return [("file", (name.replace("_", "."), content)) for name, content in files.items()]


def as_headers(**named: str) -> Mapping[str, str]:
    return {name.replace("_", "-"): value for name, value in named.items()}
