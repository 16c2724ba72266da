"""Maps errors of a search to gRPC statuses, and back.

A problem of a lane behind the librarian, such as that of a model, is not the librarian's own: the
caller learns which lane it was, as if it had searched itself.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import grpc
from google.protobuf.message import DecodeError

from penstock.errors import (
    AuthenticationError,
    BudgetReached,
    LaneBusy,
    PenstockError,
    QueueError,
    RateLimited,
    StoreUnavailable,
    Unavailable,
    ValidationError,
)
from penstock.librarian.v1 import librarian_pb2 as pb
from penstock.model.budget import BUDGET
from penstock.ports.librarian import LANE

log = logging.getLogger("penstock.librarian")

KEY = "penstock-trouble-bin"
HEARD = "penstock-heard"
"""Metadata sent by the service as it starts: a deadline that passes after it is that of a search;
before it, the service was not reached."""
FULL_SECONDS = 1.0
"""When a caller that found the service full may retry."""


class ServiceFull(PenstockError):
    """The service runs its maximum of searches."""


class CallFailure(NamedTuple):
    """The failure of a call, as a gRPC status."""

    code: grpc.StatusCode
    message: str
    trouble: pb.Trouble | None = None


def ending_of(error: Exception, lane: str | None, now: float) -> CallFailure:
    """Map an error that happened in `lane` to a gRPC status. Bugs are logged here, and named only
    by their type."""
    message = str(error)
    match error:
        case ValidationError():
            return CallFailure(grpc.StatusCode.INVALID_ARGUMENT, message)
        case ServiceFull():
            full = pb.Trouble(kind=pb.Trouble.FULL, lane=LANE, seconds=FULL_SECONDS, why=message)
            return CallFailure(grpc.StatusCode.RESOURCE_EXHAUSTED, message, full)
        case LaneBusy(lane=full_lane, until=until, why=why):
            left = max(0.0, until - now)
            busy = pb.Trouble(kind=pb.Trouble.LANE_BUSY, lane=full_lane, seconds=left, why=why)
            return CallFailure(grpc.StatusCode.RESOURCE_EXHAUSTED, message, busy)
        case RateLimited(retry_after=seconds) if lane is not None:
            limited = pb.Trouble(
                kind=pb.Trouble.RATE_LIMITED, lane=lane, seconds=seconds, why=message
            )
            return CallFailure(grpc.StatusCode.UNAVAILABLE, message, limited)
        case Unavailable() if lane is not None:
            gone = pb.Trouble(kind=pb.Trouble.UNAVAILABLE, lane=lane, why=message)
            return CallFailure(grpc.StatusCode.UNAVAILABLE, message, gone)
        case AuthenticationError() if lane is not None:
            refused = pb.Trouble(kind=pb.Trouble.REFUSED, lane=lane, why=message)
            return CallFailure(grpc.StatusCode.FAILED_PRECONDITION, message, refused)
        case TimeoutError():
            return CallFailure(grpc.StatusCode.DEADLINE_EXCEEDED, "the time was up")
        case QueueError() | StoreUnavailable() | Unavailable():
            return CallFailure(grpc.StatusCode.UNAVAILABLE, message)
        case _:
            log.error("unexpected error in a search", exc_info=error)
            return CallFailure(
                grpc.StatusCode.INTERNAL, f"the search failed: {type(error).__name__}"
            )


def behind(error: grpc.aio.AioRpcError, now: float) -> PenstockError | None:
    """Return the problem of a lane behind the librarian; None if it is the librarian's own."""
    trouble = _trouble(error)
    if trouble is None or trouble.kind == pb.Trouble.FULL:
        return None
    seconds = trouble.seconds if trouble.HasField("seconds") else None
    match trouble.kind:
        case pb.Trouble.LANE_BUSY:
            busy = BudgetReached if trouble.lane.startswith(BUDGET) else LaneBusy
            return busy(trouble.lane, now + (seconds or 0.0), trouble.why)
        case pb.Trouble.RATE_LIMITED:
            return RateLimited(trouble.why, seconds, lane=trouble.lane)
        case pb.Trouble.UNAVAILABLE:
            return Unavailable(trouble.why, lane=trouble.lane)
        case pb.Trouble.REFUSED:
            return AuthenticationError(trouble.why, lane=trouble.lane)
        case _:  # of a newer version
            return None


def own(error: grpc.aio.AioRpcError, address: str) -> PenstockError:
    """Return the librarian's own problem, as the caller raises it under its permit."""
    where = f"librarian {address}: {error.details() or error.code().name}"
    trouble = _trouble(error)
    match error.code():
        case grpc.StatusCode.INVALID_ARGUMENT:
            return ValidationError(where)
        case grpc.StatusCode.UNAUTHENTICATED:
            return AuthenticationError(f"{where}; check the token", lane=LANE)
        case grpc.StatusCode.RESOURCE_EXHAUSTED if trouble is not None:
            return RateLimited(where, trouble.seconds, lane=LANE)
        case _:
            return lost(where, address)


def lost(message: str, address: str) -> Unavailable:
    return Unavailable(message, lane=LANE, address=address)


def _trouble(error: grpc.aio.AioRpcError) -> pb.Trouble | None:
    for key, value in error.trailing_metadata() or ():
        if key == KEY and isinstance(value, bytes):
            try:
                trouble: pb.Trouble = pb.Trouble.FromString(value)
                return trouble
            except DecodeError:
                return None
    return None
