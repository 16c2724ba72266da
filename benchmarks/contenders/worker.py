"""The program of every worker process, and the few words it exchanges with the harness.

It says `ready` once everything is imported, starts working when told `go`, and ends when its
standard input does: so also when the harness is killed. A module of its own, because a peer may
name its jobs after the module they are in, which must not be `__main__`.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def worker_command(module: str, folder: Path, settings: Mapping[str, Any]) -> list[str]:
    """A command that calls `work(folder, settings)` of a contender's module."""
    return [sys.executable, "-m", __name__, module, str(folder), json.dumps(dict(settings))]


def wait_for_go() -> None:
    """All is imported; returns when the work should start."""
    print("ready", flush=True)
    if sys.stdin.readline().strip() != "go":
        raise SystemExit(0)


def until_told() -> None:
    """Returns when the work should stop."""
    sys.stdin.readline()


if __name__ == "__main__":
    importlib.import_module(sys.argv[1]).work(Path(sys.argv[2]), json.loads(sys.argv[3]))
