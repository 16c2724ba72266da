"""The program of every worker process, and the few words it exchanges with the harness.

It says `ready` once everything is imported, starts working when told `go`, and ends when its
standard input does: so also when the harness is killed. A module of its own, because a peer may
name its jobs after the module they are in, which must not be `__main__`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def worker_command(
    module: str, folder: Path, settings: Mapping[str, Any], python: str = sys.executable
) -> list[str]:
    """A command that calls `work(folder, settings)` of a contender's module."""
    return [python, "-m", __name__, module, str(folder), json.dumps(dict(settings))]


def wait_for_go() -> None:
    """All is imported; returns when the work should start."""
    print("ready", flush=True)
    if sys.stdin.readline().strip() != "go":
        raise SystemExit(0)


def until_told() -> None:
    """Returns when the work should stop."""
    sys.stdin.readline()


async def run_until_told(work: Coroutine[Any, Any, object]) -> None:
    """Run `work` until it should stop, then cancel it. If it ends before, that is an error."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    # Not a thread that reads: it would outlive an error of `work`, and hide it.
    loop.add_reader(sys.stdin.fileno(), told.set)
    running, stop = loop.create_task(work), loop.create_task(told.wait())
    done, _ = await asyncio.wait([running, stop], return_when=asyncio.FIRST_COMPLETED)
    loop.remove_reader(sys.stdin.fileno())
    if running in done:
        raise RuntimeError(f"the worker ended by itself: {running.result()!r}")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


if __name__ == "__main__":
    importlib.import_module(sys.argv[1]).work(Path(sys.argv[2]), json.loads(sys.argv[3]))
