"""Time, chance, threads, and what else the kernel decides: the one place that a simulator replaces.

Engine, lanes, outbound requests and the SQLite adapter read no clock, draw no random number, start
no thread and lock no file but by these functions. They are called as `runtime.now()`, never by a
name imported from here, so that `replaced` reaches every caller, and a call costs what a call of
`time.time()` costs. asyncio's own timers are not among them: they belong to the event loop, which
a simulator brings along.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from penstock.runtime.inotify import Inotify
from penstock.runtime.threads import Batches, Ticking

now = time.time
"""Seconds since 1970, by the clock of this machine."""
monotonic = time.monotonic
"""Seconds since some moment, for the time between two calls."""
sleep = time.sleep
"""Wait in a thread. In the event loop it is `asyncio.sleep`."""
uniform = random.Random().uniform  # noqa: S311 (jitter, not a secret)
"""A random number between two others."""
random_bytes = os.urandom
"""So many bytes that nobody can guess."""
process_id = os.getpid
host_name = socket.gethostname
open_inotify = Inotify.open
"""Notices of changes to files; None where the system has none."""
in_thread = asyncio.to_thread
"""Await a call that blocks."""
thread_event = threading.Event
"""What one thread tells another."""
thread_queue = queue.SimpleQueue[Any]
"""What one thread hands another, in order."""
thread_result = Future.result
"""Wait in a thread for what an event loop does."""
thread_pool = ThreadPoolExecutor
"""So many threads, of a name, for calls that block."""
start_ticking = Ticking
"""See `Ticking`."""
start_batches = Batches
"""See `Batches`."""


def start_thread(target: Callable[[], None], name: str) -> None:
    """Run it in a thread that does not keep the process from ending."""
    threading.Thread(target=target, name=name, daemon=True).start()


def http_transport() -> Any:
    """How HTTP requests leave the process; None: over the network."""
    return None


def try_lock(fd: int) -> bool:
    """Lock an open file until it is closed or the process ends; False if another has locked it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def replaced(**functions: Any) -> Iterator[None]:
    """Have these functions of this module done otherwise, in the whole process, for as long as the
    block lasts. Where several simulated processes share it, they find out by themselves for which
    of them they are called."""
    before = {name: globals()[name] for name in functions}
    globals().update(functions)
    try:
        yield
    finally:
        globals().update(before)
