"""What takes long to load is loaded once in a process, and without the help of others."""

import ssl
import subprocess
from pathlib import Path

import pytest

from penstock.engine import prober
from penstock.engine.prober import reachable
from penstock.outbound.certificates import trusted
from penstock.runtime import inotify
from penstock.runtime.inotify import IN_FOLDER, Inotify
from tests.support.counting_server import CountingServer
from tests.support.waiting import PATIENCE


def test_watching_files_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inotify._libc.cache_clear()
    monkeypatch.setattr(subprocess, "Popen", None)
    watching = Inotify.open()
    if watching is None:
        pytest.skip("no inotify here")
    try:
        watching.watch(tmp_path, IN_FOLDER)
        (tmp_path / "new").touch()
        assert {change.name for change in watching.read()} == {"new"}
    finally:
        watching.close()


async def test_certificates_are_not_loaded_again_for_every_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trusted()
    monkeypatch.setattr(prober, "PROBE_TIMEOUT", PATIENCE)
    monkeypatch.setattr(ssl, "create_default_context", None)
    with CountingServer() as server:
        for _ in range(2):
            assert await reachable(server.url("/"))
