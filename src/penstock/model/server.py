"""Configuration of the HTTP server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from urllib.parse import urlsplit

from penstock.errors import ConfigError
from penstock.model.section import OVER_ZERO, check_fields, setting


class Anonymous(Enum):
    """Access without a key."""

    NOBODY = "nobody"
    OWN_USER = "own user"
    """The user of this machine that the server runs as, as the kernel knows them."""
    ALL = "all"
    """Whoever reaches the port, on loopback."""


@dataclass(slots=True, frozen=True)
class ServerConfig:
    """The HTTP server: where it listens, whom it answers, and its limits."""

    host: str = "127.0.0.1"
    """Where it listens. Elsewhere than on loopback it needs a key."""
    port: int = setting(8321, least=0, most=65535)
    """0: any that is free."""
    hosts: tuple[str, ...] = ()
    """Names under which it is reached, beside the address it listens on: `docs.example.org`."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may call the API from a browser, always with a key:
    `https://app.example.org`, `chrome-extension://<id>`. None unless named."""
    require_key: bool = False
    """Ask for a key also on loopback, as behind a proxy on the same machine."""
    allow_anonymous: bool = False
    """On loopback, take whoever reaches the port without a key for an admin of the tenant
    `default`: other users of this machine too, and all that a tunnel brings. Unless set, that is
    the user who runs the server alone."""
    deadline_seconds: float = 90.0
    """How long a synchronous upsert is waited for, whatever its caller does; and an answer."""
    wait_seconds: float = 300.0
    """The longest wait of a long poll."""
    head_seconds: float = 10.0
    """A connection on which no request has come after so long is closed."""
    body_seconds: float = 30.0
    """A caller that sends nothing of a body for so long is given up, and so is one that sends less
    than 1,000 bytes a second after that time."""
    heartbeat_seconds: float = 15.0
    """A stream with nothing to tell sends a sign of life this often. Every stream and every long
    poll ends within this time, and five seconds more, of its key being revoked."""
    stream_seconds: float = 3600.0
    """A stream ends after so long, and its reader comes again, perhaps to another server."""
    stall_seconds: float = 20.0
    """A reader that takes nothing of a stream for so long is dropped, and can come again."""
    shutdown_seconds: float = 30.0
    """How long a stop waits for requests."""
    requests_per_minute: int = 6000
    """Of one key, where the key has no limit of its own."""
    max_queued: int = 1_000_000
    """With more jobs queued than this, new work is refused."""
    max_queued_per_tenant: int = 100_000
    """With more jobs of one tenant queued than this, its new work is refused."""
    max_connections: int = 10_000
    """Open at a time; with more, the one that has been idle for longest is closed."""
    max_streams: int = 4000
    """Streams open at a time."""
    max_streams_per_tenant: int = 1000
    """Of one tenant."""
    head_bytes: int = 65_536
    """What comes before the body of a request, which has 200 headers at most."""
    upload_bytes: int = 500_000_000
    """One request with files, all together."""
    upload_files: int = 100
    """Files in one request."""
    json_bytes: int = 2_000_000
    """One request with JSON."""
    idempotency_seconds: float = setting(86400.0, least=0)
    """How long the same answer is given to requests with the same Idempotency-Key."""
    actions_seconds: float = setting(90 * 86400.0, least=0)
    """How long it is remembered what callers did to jobs, lanes and documents."""
    mcp_operator_tools: bool = False
    """Offer agents over MCP also the tools for who looks after the queue: `lane_status`,
    `list_dead_letters`, `redrive`. Each tool costs every conversation some tokens."""

    def __post_init__(self) -> None:
        check_fields(self, least=OVER_ZERO)
        for origin in self.origins:
            check_origin(origin)
        if self.allow_anonymous and (self.require_key or not is_loopback(self.host)):
            raise ConfigError(
                "allow_anonymous is for a server on loopback without require_key; elsewhere "
                "everybody needs a key: `penstock keys create NAME` makes one",
                setting="allow_anonymous",
            )

    @property
    def anonymous(self) -> Anonymous:
        if self.require_key or not is_loopback(self.host):
            return Anonymous.NOBODY
        return Anonymous.ALL if self.allow_anonymous else Anonymous.OWN_USER


USUAL_PORTS = {"http": 80, "https": 443}


def check_origin(origin: str) -> None:
    """ConfigError unless it is written as browsers send it, so that it can be compared."""
    if origin in ("*", "null"):
        raise ConfigError(
            f"origins: {origin!r} would be every page there is; name those that may call",
            setting="origins",
        )
    try:
        parts = urlsplit(origin)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        scheme, host, port = "", "", None
    if not scheme or not host or "*" in host:
        raise ConfigError(
            f"origins: {origin!r} is no origin; write scheme://host or scheme://host:port, such "
            "as https://app.example.org, http://localhost:3000 or chrome-extension://<id>",
            setting="origins",
        )
    shown = f"[{host}]" if ":" in host else host
    usual = port is None or port == USUAL_PORTS.get(scheme)
    sent = f"{scheme}://{shown}" + ("" if usual else f":{port}")
    if origin != sent:
        raise ConfigError(
            f"origins: {origin!r} is sent by browsers as {sent}; write it like that",
            setting="origins",
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
