"""Maps errors of the driver and the server to errors of the queue."""

from __future__ import annotations

import asyncpg

from penstock.adapters.postgres.address import PostgresAddress
from penstock.errors import QueueError, QueueUnavailable, QueueUnusable

PASSING = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)
"""The transaction got in another's way and was undone: the same again may well succeed."""

TROUBLE = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # A connection that the server has just told of its end, and not closed yet.
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    EOFError,
)
"""Everything the driver raises when something is wrong with server, network or statement."""

_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # A fail-over turns a primary into a standby under open connections: connect anew.
    asyncpg.ReadOnlySQLTransactionError,
)


def explain(error: BaseException, address: PostgresAddress) -> QueueError:
    """The error of ours that says what an error means and what to do about it."""
    place, text = address.shown, str(error) or type(error).__name__
    match error:
        case asyncpg.ReadOnlySQLTransactionError():
            return QueueUnavailable(
                f"{place} is read-only (a standby, or after a fail-over); name the primary ({text})"
            )
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return QueueUnusable(f"{place} refuses this user or password ({text})")
        case asyncpg.InvalidCatalogNameError():
            return QueueUnusable(f"{place}: there is no such database; create it ({text})")
        case asyncpg.InsufficientPrivilegeError():
            return QueueUnusable(
                f"{place}: this user may not do that ({text}); let it own the namespace, or "
                "GRANT USAGE on it and ALL on all its tables, sequences, functions and procedures"
            )
        case asyncpg.UndefinedTableError() | asyncpg.InvalidSchemaNameError():
            return QueueUnusable(
                f"{place}: tables of the queue are missing ({text}); restore a backup, or name "
                "another namespace"
            )
        case asyncpg.SyntaxOrAccessError():
            return QueueUnusable(f"{place}: its tables or functions are not as expected ({text})")
        case asyncpg.DiskFullError():
            return QueueUnavailable(f"disk full: {place} cannot grow; free some space ({text})")
        case asyncpg.QueryCanceledError() | TimeoutError():
            return QueueUnavailable(f"{place} did not answer in time ({text})")
        case asyncpg.TooManyConnectionsError():
            return QueueUnavailable(
                f"{place} has no connection to spare ({text}); raise max_connections, or put a "
                "pooler in front and set poll_only"
            )
        case asyncpg.PostgresError():
            return QueueUnavailable(f"{place}: {text}")
        case _:
            return QueueUnavailable(f"cannot reach {place}: {text}")


def connection_lost(error: BaseException) -> bool:
    """Whether the connection the error came over cannot be used any more."""
    if isinstance(error, asyncpg.PostgresError):
        return isinstance(error, _LOST)
    return True
