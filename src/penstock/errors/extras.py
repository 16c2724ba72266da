"""Says which extra of the package brings what is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import ConfigError


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Around an import of what an extra of the package brings: ConfigError where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("penstock"):
            raise
        raise ConfigError(f"{what}: pip install 'penstock[{extra}]'") from None
