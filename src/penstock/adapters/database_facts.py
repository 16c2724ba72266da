"""Facts about a database, read without changing anything in it."""

from __future__ import annotations

from typing import NamedTuple

from penstock import runtime


class Schema(NamedTuple):
    """The migrations that have been applied."""

    version: int
    """The newest; 0: there is nothing yet."""
    needs: int
    """Code that knows fewer than this cannot use it."""
    known: int
    """How many this code knows."""

    @property
    def missing(self) -> bool:
        return self.version == 0

    @property
    def too_new(self) -> bool:
        return self.needs > self.known

    @property
    def older(self) -> bool:
        """The next process that opens it would bring it up to date."""
        return 0 < self.version < self.known


class ClockSkew(NamedTuple):
    """A server's clock offset from this machine's, with its margin of error."""

    seconds: float
    error: float

    @classmethod
    def of(cls, sent: float, server: float) -> ClockSkew:
        """The answer to a question sent at `sent`, on this machine's clock, has just come."""
        received = runtime.now()
        return cls(server - (sent + received) / 2, (received - sent) / 2)
