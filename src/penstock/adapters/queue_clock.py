"""The queue's clock, as this process knows it."""

from __future__ import annotations

from penstock import runtime

BACK_SECONDS = 1.0
"""A clock that was set back by less has no consequences that outlast it."""
DRIFT = 2e-4
"""Two clocks drift apart by less than this, in seconds per second."""


class QueueClock:
    """The server's clock, from what it said and when. What this machine's clock says does not
    matter, only how it runs: a wrong time here neither hurries nor delays a job."""

    def __init__(self) -> None:
        self._offset = runtime.now() - runtime.monotonic()
        self._error = float("inf")
        self._at = 0.0

    def now(self) -> float:
        return runtime.monotonic() + self._offset

    @staticmethod
    def local() -> float:
        """When a question is sent, for `sample`."""
        return runtime.monotonic()

    def sample(self, sent: float, server: float) -> None:
        """The answer to a question `sent` has come: the server's clock was `server` meanwhile.
        The quicker the answer, the more it is worth; older ones lose their worth."""
        received = runtime.monotonic()
        error = (received - sent) / 2
        if error <= self._error + (received - self._at) * DRIFT:
            self._offset = server - (sent + received) / 2
            self._error, self._at = error, received


class ClockWatch:
    """Notices when the queue's clock was set back: what was written meanwhile is to be mended."""

    def __init__(self) -> None:
        self._at = float("inf")  # it may have been before this process came

    def went_back(self, now: float) -> bool:
        """Whether it was since the last time this was asked; True at first."""
        back, self._at = now < self._at - BACK_SECONDS, now
        return back
