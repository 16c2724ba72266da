"""An app with research tasks."""

from __future__ import annotations

from typing import Any

from penstock import Penstock
from tests.support.side_effects import Side


def build(url: str, side: Side, **settings: Any) -> Penstock:
    app = Penstock(url, **settings)
    app.use("research")
    return app
