"""The server's clock, seen from this process.

Everything in the queue goes by the server's clock; the engine goes by its machine's. What the
server says at some moment lies between our asking and its answer. If our own clock does too, the
two cannot be told apart and nothing is translated; else the difference is taken from the middle.
"""

from __future__ import annotations


class Clock:
    __slots__ = ("_ahead",)

    def __init__(self) -> None:
        self._ahead = 0.0

    def heard(self, asked: float, server: float, answered: float) -> None:
        """The server's time, and ours before and after it said so."""
        if asked <= server <= answered:
            self._ahead = 0.0
        else:
            self._ahead = server - (asked + answered) / 2

    def here(self, at: float) -> float:
        """A time of the server on this machine's clock."""
        return at - self._ahead

    def there(self, at: float) -> float:
        """A time of this machine on the server's clock."""
        return at + self._ahead
