"""Parses the URL of a Redis queue, and its namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from penstock.errors import ConfigError

DEFAULT_NAMESPACE = "penstock"
SCHEMES = {"redis": "redis", "rediss": "rediss", "unix": "unix", "valkey": "redis"}
"""What may be written, and what the client library calls it."""
_NAMESPACE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_EXAMPLE = "write redis://localhost:6379/0?namespace=jobs"


@dataclass(slots=True, frozen=True)
class RedisAddress:
    """A parsed URL."""

    url: str
    """For the client library: without what is ours."""
    namespace: str
    shown: str
    """For people: without the password."""

    @property
    def tag(self) -> str:
        """What every key begins with. The braces put all of them in one slot of a cluster."""
        return f"{{{self.namespace}}}"

    @property
    def place(self) -> str:
        """The same for every process that means the same queue, whatever it logs in with."""
        return f"{self.shown} {self.namespace}"


def parse(url: str) -> RedisAddress:
    """The address `url` names, or ConfigError saying what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"the queue's URL is not one ({error}); {_EXAMPLE}") from None
    if parts.scheme not in SCHEMES:
        raise ConfigError(f"no Redis queue for {parts.scheme!r} URLs; {_EXAMPLE}")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    namespace = query.pop("namespace", DEFAULT_NAMESPACE)
    if not _NAMESPACE.fullmatch(namespace):
        raise ConfigError(
            f"namespace {namespace!r} is not 1 to 64 letters, digits, '_', '.', ':' or '-'"
        )
    scheme = SCHEMES[parts.scheme]
    if scheme == "unix":
        if not parts.path:
            raise ConfigError("the queue's URL names no socket; write unix:///run/redis.sock")
        shown = f"unix://{parts.path}"
    else:
        database = parts.path.strip("/")
        if database and not database.isdigit():
            raise ConfigError(f"the queue's URL names no database: {database!r}; {_EXAMPLE}")
        shown = f"{scheme}://{parts.hostname or 'localhost'}:{port or 6379}/{database or 0}"
    plain = urlunsplit((scheme, parts.netloc, parts.path, urlencode(query), ""))
    return RedisAddress(plain, namespace, shown)
