"""Configuration of the librarian as a service of its own."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.model.section import OVER_ZERO, check_fields, setting


@dataclass(slots=True, frozen=True)
class LibrarianConfig:
    """The librarian as a service of its own. Both sides read their part: those who ask, and the
    service (`penstock librarian`)."""

    address: str | None = None
    """`host:port` of the service. Without one, every process that answers searches by itself."""
    token_variable: str | None = None
    """The environment variable that holds the token which both sides share. Elsewhere than on
    loopback the service needs one."""
    tls_authority: str | None = None
    """Who asks: the PEM file of the authority that the service's certificate is checked by, or
    `system` for those that the machine trusts. Without one it speaks in plain text."""
    tls_name: str | None = None
    """Who asks: the name in the service's certificate, where that is not the host of `address`."""
    tls_certificate: str | None = None
    """The service: the PEM file of its certificate, with those it hangs on."""
    tls_key: str | None = None
    """The service: the PEM file of the certificate's private key."""
    host: str = "127.0.0.1"
    """The service: where it listens."""
    port: int = setting(8331, least=0, most=65535)
    """The service: 0 is any that is free."""
    max_searches: int = 32
    """The service: at a time; with more, whoever asks is told to come back."""
    keepalive_seconds: float = 5.0
    """A side that has heard nothing for so long asks whether the other is there, and gives it up
    after as long again."""
    shutdown_seconds: float = 25.0
    """The service: how long a stop waits for searches."""

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
