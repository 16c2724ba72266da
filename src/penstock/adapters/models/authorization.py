"""The key of a model's server, read from the environment at each request."""

from __future__ import annotations

import os

from penstock.errors import ConfigError


def authorization(variable: str | None, whose: str) -> dict[str, str]:
    """The header that carries the key; none where there is no such variable. ConfigError where it
    is not set."""
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"set {variable} to the key of the {whose}")
    return {"authorization": f"Bearer {key}"}
