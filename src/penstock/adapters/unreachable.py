"""Error messages for a store that cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import QueueUnavailable, StoreUnavailable


@contextmanager
def reaching_store() -> Iterator[None]:
    """Whatever speaks to a database speaks of a queue; here the database is a store."""
    try:
        yield
    except QueueUnavailable as error:
        raise StoreUnavailable(str(error)) from error
