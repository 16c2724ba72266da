"""Credentials of both sides: a shared token, and certificates."""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc

from penstock.errors import ConfigError
from penstock.model.librarian import LibrarianConfig

HEADER = "authorization"
HEALTH = "/grpc.health.v1.Health/"
"""Callable without a token; it only tells whether the service is ready."""
SYSTEM = "system"


def token_of(config: LibrarianConfig) -> str | None:
    """Return the token, if one is configured. Raises ConfigError if its variable is unset or
    invalid."""
    variable = config.token_variable
    if variable is None:
        return None
    token = os.environ.get(variable, "")
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError(f"librarian: {variable} must be set to the token, in printable ASCII")
    return token


def server_credentials(config: LibrarianConfig) -> grpc.ServerCredentials | None:
    """Load the certificate; None: no encryption."""
    if config.tls_certificate is None or config.tls_key is None:
        return None
    pair = (_read("tls_key", config.tls_key), _read("tls_certificate", config.tls_certificate))
    return grpc.ssl_server_credentials([pair])


def channel_credentials(config: LibrarianConfig) -> grpc.ChannelCredentials | None:
    """Load the trusted authorities; None: no encryption."""
    if config.tls_authority is None:
        return None
    if config.tls_authority == SYSTEM:
        return grpc.ssl_channel_credentials()
    return grpc.ssl_channel_credentials(_read("tls_authority", config.tls_authority))


def _read(key: str, name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"librarian: {key}: {name}: {error.strerror or error}") from None


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Rejects calls without the token, before reading anything of them."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        shown = [value for key, value in details.invocation_metadata if key == HEADER]
        given = str(shown[0]).encode() if len(shown) == 1 else b""
        if hmac.compare_digest(given, self._wanted) or details.method.startswith(HEALTH):
            return await continuation(details)
        return grpc.unary_stream_rpc_method_handler(_refuse)


async def _refuse(request: bytes, context: grpc.aio.ServicerContext) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")
