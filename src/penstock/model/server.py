"""Configuration of the HTTP server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from urllib.parse import urlsplit

from penstock.errors import ConfigError
from penstock.model.section import OVER_ZERO, check_fields, setting

TOOL_FAMILIES = ("own", "documents", "research", "answers")
"""What MCP offers: the tools of the app, and those for its services."""


class Anonymous(Enum):
    """Access without a key."""

    NOBODY = "nobody"
    OWN_USER = "own user"
    """The user of this machine that the server runs as, as the kernel knows them."""
    ALL = "all"
    """Whoever reaches the port, on loopback."""


@dataclass(slots=True, frozen=True)
class ServerConfig:
    """The HTTP server: address, access and limits."""

    host: str = "127.0.0.1"
    """Address to listen on. On any but a loopback address, callers need an API key."""
    port: int = setting(8321, least=0, most=65535)
    """Port to listen on. 0: any free port."""
    hosts: tuple[str, ...] = ()
    """Host names under which the server is reached, in addition to the address it listens on:
    `docs.example.org`."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may call the API from a browser (CORS), always with a key:
    `https://app.example.org`, `chrome-extension://<id>`. None by default."""
    require_key: bool = False
    """Require an API key on loopback too, for example behind a proxy on the same machine."""
    allow_anonymous: bool = False
    """On loopback, treat every caller without a key as an admin of the tenant `default`, including
    other users of this machine and traffic through a tunnel. By default only the user who runs the
    server needs no key."""
    deadline_seconds: float = 90.0
    """Maximum wait for a synchronous upsert or answer."""
    wait_seconds: float = 300.0
    """Maximum wait of a long poll."""
    head_seconds: float = 10.0
    """Time limit for the request line and headers, after which the connection is closed. It starts
    with the connection, or with the first byte of a further request on it."""
    body_seconds: float = 30.0
    """A request is aborted when no bytes of its body arrive for this long, or when it is slower
    than 1,000 bytes a second after this time."""
    heartbeat_seconds: float = 15.0
    """Heartbeat interval of an idle stream. Streams and long polls end within this time plus five
    seconds of their key being revoked."""
    stream_seconds: float = 3600.0
    """Maximum duration of a stream. Clients then reconnect, possibly to another server."""
    stall_seconds: float = 20.0
    """A client that reads nothing from a stream for this long is disconnected; it can reconnect."""
    shutdown_seconds: float = 30.0
    """Grace period for requests on shutdown."""
    requests_per_minute: int = 6000
    """Rate limit of an API key, unless the key has its own."""
    max_queued: int = 1_000_000
    """Maximum queued jobs. New work is rejected while there are more."""
    max_queued_per_tenant: int = 100_000
    """Maximum queued jobs of one tenant. Its new work is rejected while it has more."""
    max_connections: int = 10_000
    """Maximum open connections. When exceeded, the connection that has been idle longest is
    closed."""
    max_streams: int = 4000
    """Maximum open streams."""
    max_streams_per_tenant: int = 1000
    """Maximum open streams of one tenant."""
    head_bytes: int = 65_536
    """Maximum size of the request line and headers, of which there may be 200."""
    upload_bytes: int = 500_000_000
    """Maximum size of a request with files."""
    upload_files: int = 100
    """Maximum number of files in a request."""
    json_bytes: int = 2_000_000
    """Maximum size of a request with JSON."""
    idempotency_seconds: float = setting(86400.0, least=0)
    """How long a response is stored and repeated for requests with the same `Idempotency-Key`."""
    actions_seconds: float = setting(90 * 86400.0, least=0)
    """Retention of the audit log: what callers did to jobs, lanes and documents."""
    mcp_tools: tuple[str, ...] = TOOL_FAMILIES
    """Tools to offer over MCP: the app's `own`, and those for `documents`, `research` and
    `answers`."""
    mcp_wait_seconds: float = setting(50.0, most=300)
    """Maximum wait of an MCP call. Many clients give up a call after 60 s."""
    mcp_operator_tools: bool = False
    """Offer the operator tools over MCP: `lane_status`, `list_dead_letters`, `redrive`. Each tool
    costs every conversation some tokens."""

    def __post_init__(self) -> None:
        check_fields(self, least=OVER_ZERO)
        check_families(self.mcp_tools)
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


def check_families(families: Sequence[str]) -> None:
    """ConfigError unless each is one that there is."""
    for family in families:
        if family not in TOOL_FAMILIES:
            raise ConfigError(
                f"mcp_tools: there is no {family!r}; there are: {', '.join(TOOL_FAMILIES)}",
                setting="mcp_tools",
            )
    if not families:
        raise ConfigError("mcp_tools: name at least one of the tools", setting="mcp_tools")


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
