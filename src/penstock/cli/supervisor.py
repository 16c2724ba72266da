"""Runs worker processes, another for each that dies, and all anew when code has changed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from asyncio.subprocess import Process
from collections.abc import Collection, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.aio import end_tasks
from penstock.cli.errors import ExitCode
from penstock.cli.session import Session
from penstock.cli.stopping import Signals

FIRST_PAUSE = 1.0
"""Before the first restart of a process; it doubles with each, up to `LONGEST_PAUSE`."""
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0
"""A process that has lived so long is restarted as if it had died for the first time."""
RELOAD_GRACE = "2"
"""Seconds that running jobs have when the code has changed, unless --grace says."""
LOOK_SECONDS = 0.5
"""Between two looks at whether code has changed."""
LEFT_OUT = {"__pycache__", "node_modules", "site-packages"}
"""Folders without code of the app; as are those that begin with a dot, and environments."""


def own_arguments(arguments: Sequence[str], *, reload: bool = False) -> list[str]:
    """The arguments of each worker process: those of the command but for the options that are about
    several of them. For `reload` running jobs return to the queue soon."""
    kept: list[str] = []
    rest = iter(arguments)
    for one in rest:
        if one == "--processes":
            next(rest, None)
        elif one != "--reload" and not one.startswith("--processes="):
            kept.append(one)
    if reload and not any(one.partition("=")[0] == "--grace" for one in kept):
        kept += ["--grace", RELOAD_GRACE]
    return [*kept, "--supervised"]


def snapshot(folder: Path) -> dict[str, int]:
    """The Python files below a folder, and when each was changed."""
    found: dict[str, int] = {}
    for where, folders, files in os.walk(folder):
        folders[:] = [
            one
            for one in folders
            if one not in LEFT_OUT
            and not one.startswith(".")
            and not os.path.exists(os.path.join(where, one, "pyvenv.cfg"))
        ]
        for file in files:
            if file.endswith(".py"):
                path = os.path.join(where, file)
                try:
                    found[path] = os.stat(path).st_mtime_ns
                except OSError:  # deleted meanwhile
                    continue
    return found


class WorkerProcesses:
    """The worker processes of a supervisor."""

    def __init__(self, session: Session, arguments: Sequence[str], *, reload: bool) -> None:
        self._session = session
        self._command = [sys.executable, "-m", "penstock.cli", *arguments]
        self._reload = reload
        self._drains = "--drain" in arguments
        self._alive: set[Process] = set()
        self._replaced: set[Process] = set()
        """Those that were told to end because code has changed."""
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()

    async def keep(self) -> int:
        """Run a process, and another when it dies. Returns how it ended, if that was on purpose."""
        pause = FIRST_PAUSE
        while True:
            begun, code, replaced = time.monotonic(), *await self._run()
            if self._stopping.is_set():
                return code
            if replaced:
                pause = FIRST_PAUSE
                continue
            if code == ExitCode.INVALID and self._reload:
                self._session.tell("waiting", "waiting for a change of the code")
                self._changed.clear()
                await _first(self._changed.wait(), self._stopping.wait())
                continue
            if code == ExitCode.INVALID or (code == ExitCode.OK and self._drains):
                return code
            if time.monotonic() - begun > STEADY_SECONDS:
                pause = FIRST_PAUSE
            how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
            text = f"a worker process ended {how}; starting another in {pause:g} s"
            self._session.tell("restarting", text, exit_code=code, pause=pause)
            await _first(self._stopping.wait(), asyncio.sleep(pause))
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run(self) -> tuple[int, bool]:
        if self._stopping.is_set():
            return ExitCode.OK, False
        # In a group of its own: Ctrl-C is for the supervisor, which passes it on once. Its standard
        # input ends when the supervisor does, however that ends.
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, process_group=0
        )
        self._alive.add(process)
        if self._stopping.is_set():
            self._signal([process])
        try:
            code = await process.wait()
        finally:
            self._alive.discard(process)
        replaced = process in self._replaced
        self._replaced.discard(process)
        return code, replaced

    def restart(self) -> None:
        """Replace all processes."""
        self._changed.set()
        self._replaced |= self._alive
        self._signal(self._alive)

    def stop(self) -> None:
        """End all processes; called a second time, at once."""
        self._stopping.set()
        self._signal(self._alive)

    @staticmethod
    def _signal(processes: Collection[Process]) -> None:
        for process in processes:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    # Not by its own method, which looks first whether it has ended: then nobody
                    # learns with what exit code.
                    os.kill(process.pid, signal.SIGTERM)


async def supervise(
    session: Session, arguments: Sequence[str], processes: int, *, reload: bool
) -> int:
    """Run so many worker processes until told to stop, or until they have drained; the exit code
    is the greatest of theirs."""
    signals = Signals()
    group = WorkerProcesses(session, own_arguments(arguments, reload=reload), reload=reload)
    # Before any process reads the code: what is changed from now on is seen.
    seen = await asyncio.to_thread(snapshot, Path.cwd()) if reload else {}
    kept = [asyncio.create_task(group.keep()) for _ in range(processes)]
    watching = [asyncio.create_task(_watch(session, group, seen))] if reload else []
    try:
        ended = asyncio.ensure_future(_ended(kept))
        await signals.wait_or(ended)
        group.stop()
        hastening = asyncio.create_task(_hasten(signals, group))
        codes = await asyncio.gather(*kept)
        await end_tasks([hastening, ended])
    finally:
        await end_tasks(watching)
    return signals.stopped(session) or max(codes)


async def _ended(kept: Sequence[asyncio.Task[int]]) -> None:
    """Return when all have ended on purpose, or one never can be started."""
    for done in asyncio.as_completed(kept):
        if await done:
            return


async def _hasten(signals: Signals, group: WorkerProcesses) -> None:
    await signals.hasten.wait()
    group.stop()


async def _watch(session: Session, group: WorkerProcesses, seen: dict[str, int]) -> None:
    folder = Path.cwd()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = await asyncio.to_thread(snapshot, folder)
        if now != seen:
            path = min(path for path, _ in seen.items() ^ now.items())
            seen = now
            name = path.removeprefix(f"{folder}/")
            session.tell("reloading", f"{name} has changed; reloading", path=name)
            group.restart()


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.create_task(one) for one in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await end_tasks(tasks)


def end_with_supervisor() -> None:
    """Stop this process, as by SIGTERM, when its supervisor is gone."""

    def wait() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock a thread must not hold at the exit
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="penstock-supervised", daemon=True).start()
