"""Of many alike, which are always tried."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_of(names: Iterable[str], *always: str) -> list[Any]:
    """For `parametrize`: the others only by `make chaos`."""
    return [
        name if name in always else pytest.param(name, marks=pytest.mark.long) for name in names
    ]
