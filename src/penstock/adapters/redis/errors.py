"""Explains errors of a Redis server and what to do about them."""

from __future__ import annotations

from redis import exceptions

from penstock.errors import QueueError, QueueUnavailable, QueueUnusable

_LOGIN = ("NOAUTH", "WRONGPASS", "NOPERM", "DENIED")


def explain(error: Exception, shown: str) -> QueueError:
    """The error of ours that says what a client library's error means. `shown` is the server's
    address without its password."""
    text = str(error) or type(error).__name__
    word = text.split(" ", 1)[0]
    match error:
        case exceptions.BusyLoadingError():
            return QueueUnavailable(f"{shown} is loading its data; it answers when it has")
        case exceptions.AuthenticationError() | exceptions.NoPermissionError():
            return _login(shown, text)
        case exceptions.ReadOnlyError():
            return QueueUnavailable(
                f"{shown} is a replica and takes no writes; name the primary in the URL ({text})"
            )
        case exceptions.TimeoutError() | TimeoutError():
            return QueueUnavailable(f"{shown} did not answer in time; is it overloaded? ({text})")
        case exceptions.ConnectionError() | OSError():
            return QueueUnavailable(f"cannot reach {shown}; is it running? ({text})")
        case _ if word in _LOGIN:
            return _login(shown, text)
        case exceptions.OutOfMemoryError():
            return QueueUnavailable(
                f"the memory of {shown} is full; raise its maxmemory, shorten retention_seconds or "
                f"discard dead letters ({text})"
            )
        case exceptions.MovedError() | exceptions.AskError():
            return QueueUnusable(
                f"{shown} is a node of a cluster that does not hold this namespace; name the node "
                f"that does ({text})"
            )
        case exceptions.ResponseError() if word in ("MISCONF", "BUSY", "CLUSTERDOWN", "MASTERDOWN"):
            return QueueUnavailable(f"{shown} takes no writes now ({text})")
        case exceptions.ResponseError() if "WRONGTYPE" in text:
            return QueueUnusable(
                f"{shown} holds keys of another program under this namespace; choose another: "
                f"?namespace=... ({text})"
            )
        case _:
            return QueueUnusable(f"{shown}: {text}")


def _login(shown: str, text: str) -> QueueError:
    return QueueUnusable(
        f"{shown} refuses this login; put user and password into the URL, and let the user run "
        f"scripts on the namespace's keys ({text})"
    )
