"""Configuration of an outside service: its URL, and the variable that holds its key."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from penstock.errors import ConfigError

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def check_base_url(url: str) -> None:
    if not _is_address(url):
        raise ConfigError("base_url must be like https://host/path, without ? and #")


def check_variable(key: str, name: str, example: str) -> None:
    """`name` is not quoted: what does not look like a name is likely the key itself."""
    if not _VARIABLE.fullmatch(name):
        raise ConfigError(
            f"{key} names the environment variable that holds the key, such as {example}; "
            "the key itself does not belong into a file"
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    whole = parts.scheme in ("http", "https") and bool(parts.hostname)
    return whole and not parts.query and not parts.fragment
