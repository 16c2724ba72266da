"""Configuration of the librarian as a service of its own."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.model.section import OVER_ZERO, check_fields, setting


@dataclass(slots=True, frozen=True)
class LibrarianConfig:
    """The librarian as a separate service. Clients (the processes that answer) and the service
    (`penstock librarian`) read the same section."""

    address: str | None = None
    """Client: `host:port` of the service. Without it, every process that answers runs the librarian
    itself."""
    token_variable: str | None = None
    """Both: environment variable that holds the shared token. The service requires one unless it
    listens on loopback."""
    tls_authority: str | None = None
    """Client: PEM file of the certificate authority to verify the service with, or `system` for the
    authorities that the machine trusts. Without it the connection is not encrypted."""
    tls_name: str | None = None
    """Client: host name in the service's certificate, if it differs from that of `address`."""
    tls_certificate: str | None = None
    """Service: PEM file of its certificate chain."""
    tls_key: str | None = None
    """Service: PEM file of the certificate's private key."""
    host: str = "127.0.0.1"
    """Service: address to listen on."""
    port: int = setting(8331, least=0, most=65535)
    """Service: port to listen on. 0: any free port."""
    max_searches: int = 32
    """Service: maximum concurrent searches. Further callers are told to retry later."""
    keepalive_seconds: float = 5.0
    """Both: an idle connection is pinged after this time, and closed if there is no reply within
    the same time again."""
    shutdown_seconds: float = 25.0
    """Service: grace period for searches on shutdown."""

    def __post_init__(self) -> None:
        check_fields(self, least=OVER_ZERO)
        if self.address is not None:
            check_address(self.address)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigError("tls_certificate and tls_key go together")
        if self.tls_name is not None and self.tls_authority is None:
            raise ConfigError("tls_name needs tls_authority", setting="tls_name")


def check_address(address: str) -> None:
    host, colon, port = address.rpartition(":")
    known = port.isascii() and port.isdecimal() and 0 < int(port) < 65536
    if not colon or not host or not known or "/" in host or any(sign.isspace() for sign in host):
        raise ConfigError(f"address must be host:port, not {address!r}", setting="address")
