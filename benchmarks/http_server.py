"""`penstock serve` as the harness holds it, with an embedder on loopback behind it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from benchmarks.processes import ROOT, STOP_SECONDS, wait_until
from tests.support.embedder import DIMENSIONS, MODEL, EmbedderServer

APP = "benchmarks.http_app:app"
UNLIMITED = 10_000_000
"""Requests a minute: the server is measured, not its limit."""


class HttpServer:
    """Started when the block is entered, and ready then; `ready_seconds` says how long it took.
    Everything but the rate limit is as it comes."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        self._arguments = arguments
        self._errors = folder / "serve.stderr"
        self._embedder = EmbedderServer()
        self.ready_seconds = 0.0

    def __enter__(self) -> Self:
        self._embedder.__enter__()
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [str(Path(sys.executable).with_name("penstock")), "serve", APP]
        options = ["--port", str(port), "--config", self._config(), *self._arguments]
        environment = {**os.environ, "PENSTOCK_QUEUE": f"sqlite:///{self._folder}/penstock.db"}
        begun = time.perf_counter()
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*command, *options], cwd=ROOT, env=environment, stdout=errors, stderr=errors
            )
        try:
            wait_until(lambda: self._dead() or _ready(port), "the server to be ready")
            if self._dead():
                raise RuntimeError(f"the server did not start: {self.said()[-2000:]}")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.ready_seconds = time.perf_counter() - begun
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._embedder.__exit__(kind, error, trace)

    def _dead(self) -> bool:
        return self._process.poll() is not None

    def said(self) -> str:
        return self._errors.read_text(errors="replace")

    def memory(self) -> float:
        """MB of the process itself, without its parsers."""
        return float(psutil.Process(self._process.pid).memory_info().rss) / 1e6

    def _config(self) -> str:
        path = self._folder / "penstock.yaml"
        embedder = {
            "provider": "openai",
            "base_url": self._embedder.url("/v1"),
            "model": MODEL,
            "dimensions": DIMENSIONS,
        }
        settings: dict[str, Any] = {"requests_per_minute": UNLIMITED}
        path.write_text(json.dumps({"embedder": embedder, "server": settings}))  # YAML too
        return str(path)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _ready(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection.recv(1000).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
