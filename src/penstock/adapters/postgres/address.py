"""Parses the URL of a PostgreSQL queue, and its namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from penstock.errors import ConfigError

SCHEMES = ("postgresql", "postgres")
DEFAULT_NAMESPACE = "penstock"
_NAMESPACE = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,39}")
"""Short enough for the names of the wake-up channels, and never in need of quotes elsewhere."""
EXAMPLE = "postgresql://user@host:5432/database?namespace=penstock"


@dataclass(slots=True, frozen=True)
class PostgresAddress:
    dsn: str
    """What the driver is given; may hold a password."""
    namespace: str
    shown: str
    """What may be shown: without a password."""

    @property
    def schema(self) -> str:
        """The namespace, quoted for SQL."""
        return f'"{self.namespace}"'


def parse(url: str) -> PostgresAddress:
    """The address a URL stands for. ConfigError says what is wrong with it."""
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise ConfigError(f"the queue's URL cannot be read ({error}); write {EXAMPLE}") from None
    if parts.scheme not in SCHEMES or not parts.path.strip("/"):
        raise ConfigError(f"the queue's URL names no database; write {EXAMPLE}")
    namespace = dict(options).get("namespace", DEFAULT_NAMESPACE)
    if not _NAMESPACE.fullmatch(namespace):
        raise ConfigError(
            f"namespace {namespace!r} must be 1 to 40 of a-z, 0-9 and _, not beginning with a "
            "digit or pg_"
        )
    rest = urlencode([(name, value) for name, value in options if name != "namespace"])
    user, at, host = parts.netloc.rpartition("@")
    netloc = user.partition(":")[0] + at + host
    return PostgresAddress(
        dsn=parts._replace(scheme=SCHEMES[0], query=rest).geturl(),
        namespace=namespace,
        shown=f"{SCHEMES[0]}://{netloc}{parts.path}?namespace={namespace}",
    )
