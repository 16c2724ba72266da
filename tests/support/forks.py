"""`python -m MODULE`, in a fork of a process that has loaded Python and Penstock already.

Loading is most of what a short command costs, and the suite runs hundreds. Each is a process of
its own all the same: its own files, signals, environment and end. Tests of the start itself, of
terminals and of other programs start `penstock` in the usual way.

The server runs no thread and opens nothing before it forks, so a fork is as good as new. Forks have
forks, too: the parsers of a worker (tests/support/parsers.py).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from types import ModuleType
from typing import Any

import penstock.cli
from tests.support import parsers
from tests.support.run_folder import MARK, run_folder

ROOT = Path(__file__).parents[2]
WITH_INTERRUPTS = ("env", "--default-signal=INT")
"""A shell starts what runs in the background deaf to Ctrl-C; tests may be run there too."""
WARNINGS = {"PYTHONWARNINGS": "error"}
ENVIRONMENT = {**os.environ, **WARNINGS}
"""Of the server; as it was before a test changed its own."""
LARGEST = 1 << 17
"""Bytes of a request."""
APART = ("penstock.cli.__main__", "penstock.contrib.django")
"""What does something when it is loaded, or needs settings of a site."""
LATE = (
    *("PIL.Image", "pypdfium2", "pypdfium2.raw", "trafilatura"),
    *("anyio._backends._asyncio", "numpy", "yaml"),
)
"""What parsers, and others, load only when they need it."""


class Forked:
    """A process, with what tests want of a `subprocess.Popen`."""

    def __init__(self, pid: int, news: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._news = news

    def poll(self) -> int | None:
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._news], [], [], timeout)[0]:
            told = self._news.recv(100)
            assert told, "the server of forks is gone"
            self._news.close()
            self.returncode = os.waitstatus_to_exitcode(int(told))
        return self.returncode


Started = Forked | subprocess.Popen[bytes]


def start(
    module: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdout: int,
    stderr: int,
    stdin: int | None = None,
    wrapper: Sequence[str] = (),
) -> Started:
    """Run `python -m module arguments` in `folder`, or `python module` where it is a file's path,
    with these as its standard files. It is no fork where another program runs it, or where Python
    itself is to be set up differently."""
    files = (_nothing() if stdin is None else stdin, stdout, stderr)
    if wrapper or _of_python(environment) != _of_python(ENVIRONMENT):
        return subprocess.Popen(
            [*WITH_INTERRUPTS, *wrapper, sys.executable, *_named(module), *arguments],
            cwd=folder,
            env=environment,
            stdin=files[0],
            stdout=stdout,
            stderr=stderr,
        )
    asked = [module, list(arguments), str(folder), dict(environment)]
    news = ask(server(), asked, files)
    told = news.recv(100)
    assert told, "the server of forks is gone"
    return Forked(int(told), news)


def ask(server: socket.socket, asked: list[Any], files: Sequence[int]) -> socket.socket:
    """For a fork. What is returned tells its number, and later how it ended."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        socket.send_fds(server, [json.dumps(asked).encode()], [*files, theirs.fileno()])
    return ours


def run(
    module: str,
    arguments: Sequence[str] = (),
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: str = "",
    timeout: float = 250.0,
) -> subprocess.CompletedProcess[str]:
    """The same to its end."""
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        process = start(
            module,
            arguments,
            folder=folder,
            environment=environment,
            stdin=given.fileno(),
            stdout=out.fileno(),
            stderr=err.fileno(),
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(
            [module, *arguments], code, out.read().decode(), err.read().decode()
        )


def _named(module: str) -> list[str]:
    return [module] if module.endswith(".py") else ["-m", module]


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """What is read once, when Python starts."""
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


@cache
def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY)


@cache
def server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [*WITH_INTERRUPTS, sys.executable, "-m", __name__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            # The mark, so that its forks end with the run; and no thread of numpy's.
            env={**ENVIRONMENT, MARK: str(run_folder()), "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # a Ctrl-C at the tests is not for it
        )
    atexit.register(process.wait, 60)
    atexit.register(ours.close)  # which ends it, and is done first
    return ours


def command(module: str, *arguments: str) -> list[str]:
    """A command line that does the same as `start`, for others to run. Its environment must be as
    that of the tests in what Python reads when it starts."""
    launch = str(Path(__file__).with_name("fork_command.py"))
    return [sys.executable, "-IS", launch, _listening(), module, *arguments]


@cache
def _listening() -> str:
    """Where `fork_command.py` asks for forks."""
    server()  # now, and not in the thread at the same time as elsewhere
    path = f"{mkdtemp(dir=run_folder())}/forks"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    threading.Thread(target=_pass_on, args=[listener], name="forks", daemon=True).start()
    return path


def _pass_on(listener: socket.socket) -> None:
    """Ask for what comes in. The server tells the end of a fork to whoever asked for it."""
    while True:
        with listener.accept()[0] as asking:
            text, files, _, _ = socket.recv_fds(asking, LARGEST, 3)
            if text:  # else it has been killed already
                socket.send_fds(server(), [text], [*files, asking.fileno()])
            for file in files:
                os.close(file)


def _serve(asking: socket.socket) -> tuple[list[Any], socket.socket] | None:
    """Fork whenever asked to, until the tests cannot ask. In a fork: what it is to do, and whom it
    may ask in its turn."""
    ended, wake = socket.socketpair()
    of_forks, for_forks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    alive: dict[int, socket.socket] = {}
    tied: dict[socket.socket, int] = {}
    """Forks that are killed with whoever asked for them."""
    while True:
        tied = {one: pid for one, pid in tied.items() if pid in alive}
        ready = select.select([asking, of_forks, ended, *tied], [], [])[0]
        if ended in ready:
            ended.recv(1000)
            _tell_of_ends(alive)
            continue  # what was ready may be closed now
        for gone in tied.keys() & set(ready):
            os.kill(tied.pop(gone), signal.SIGKILL)
        for one in {asking, of_forks}.intersection(ready):
            text, files, _, _ = socket.recv_fds(one, LARGEST, 4)
            if not text:
                signal.set_wakeup_fd(-1)
                for mine in (asking, of_forks, for_forks, ended, wake, *alive.values()):
                    mine.close()
                return None
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number, file in enumerate(files[:3]):
                    os.dup2(file, number)
                for file in files:
                    os.close(file)
                for mine in (asking, of_forks, ended, wake, *alive.values()):
                    mine.close()
                return list(json.loads(text))[:4], for_forks
            for file in files[:3]:
                os.close(file)
            alive[pid] = socket.socket(fileno=files[3])
            if len(json.loads(text)) > 4:
                tied[alive[pid]] = pid
            with contextlib.suppress(ConnectionError):  # who asked may have been killed
                alive[pid].send(str(pid).encode())


def _ask_again(server: int, asked: list[Any], files: Sequence[int]) -> socket.socket:
    """In a fork. The number stays open as long as it lives, and nobody misses its end."""
    with socket.socket(fileno=os.dup(server)) as asking:
        return ask(asking, asked, files)


def _tell_of_ends(alive: dict[int, socket.socket]) -> None:
    while alive:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        # The test may have forgotten it, or have been killed before it read what there was.
        with alive.pop(pid) as news, contextlib.suppress(ConnectionError):
            news.send(str(status).encode())


def _become(module: str, arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Do what a new `python -m module` in that folder would."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    _open_standard_files()
    sys.argv = ["", *arguments]
    draw_anew()
    if module == parsers.MODULE:
        parsers.become()
    if module.endswith(".py"):
        sys.argv[0] = module
        sys.path[0] = str(Path(module).resolve().parent)
        runpy.run_path(module, run_name="__main__")
    else:
        sys.path[0] = folder
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _open_standard_files() -> None:
    """Anew: Python asked the server's own whether one can seek in them, and they are others now."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        new = open(  # noqa: SIM115 (for as long as the process lives)
            number,
            "r" if number == 0 else "w",
            buffering=1 if number == 2 or os.isatty(number) else -1,
            encoding=old.encoding,
            errors=old.errors,
            closefd=False,
        )
        new.reconfigure(write_through=old.write_through)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def draw_anew() -> None:
    """Else every fork would draw the same."""
    for source in _sources_of_chance():
        source.seed()


@cache
def _sources_of_chance() -> list[random.Random]:
    """Of Penstock's modules. Looked for before the first fork: every object that a fork looks at
    has to be copied for it."""
    return [
        value
        for name, loaded in list(sys.modules.items())
        if name.startswith("penstock")
        for value in vars(loaded).values()
        if issubclass(type(value), random.Random)  # isinstance would load lazy objects
    ]


def _load() -> None:
    """Penstock, and no app: one may change it when it is loaded."""
    _load_package(penstock)
    for name in LATE:
        importlib.import_module(name)
    penstock.cli.command()
    _sources_of_chance()
    assert threading.active_count() == 1
    gc.freeze()


def _load_package(package: ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name not in APART:
            loaded = importlib.import_module(found.name)
            if found.ispkg:
                _load_package(loaded)


def _end(code: int) -> None:
    """Exit as Python does, but for taking apart every module: it costs more than most commands,
    since each object that is let go has to be copied from the server's memory first."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # what was not closed is complained about
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    _load()
    if forked := _serve(socket.socket(fileno=int(sys.argv[1]))):
        asked, for_forks = forked
        again = partial(_ask_again, for_forks.detach())
        asyncio.create_subprocess_exec = parsers.forking(again)  # type: ignore[assignment]
        try:
            _become(*asked)
        except SystemExit as ended:
            if ended.code is not None and not isinstance(ended.code, int):
                raise
            _end(ended.code or 0)
        _end(0)


if __name__ == "__main__":
    main()
