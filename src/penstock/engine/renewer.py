"""Keeps the leases of a process alive, from a thread of its own.

A thread, because a handler may block the event loop for longer than a lease. It ends only
after the last running job has been settled.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.errors import QueueError
from penstock.ports.queue import Lease, Member

log = logging.getLogger("penstock")


class Renewer:
    def __init__(
        self,
        member: Member,
        interval: float,
        status: Callable[[], Mapping[str, Any]],
        holds: Callable[[], Sequence[Lease]],
        lapsed: Callable[[], None],
    ) -> None:
        self._member = member
        self._interval = interval
        self._status = status
        self._holds = holds
        self._lapsed = lapsed
        self._stopped = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="penstock-renew", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Blocks until a renewal under way has ended."""
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def soon(self) -> None:
        """Renew now, because the status has changed in a way that others should see."""
        self._wake.set()

    def _loop(self) -> None:
        pause, failing = self._interval, False
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopped:
                return
            pause = self._interval
            try:
                if not self._member.renew(self._status(), self._holds()):
                    self._lapsed()
                    return
                if failing:
                    log.warning("leases can be renewed again")
                failing = False
            except QueueError as error:
                if not failing:
                    log.warning("cannot renew leases, retrying: %s", error)
                pause, failing = self._interval / 5, True
