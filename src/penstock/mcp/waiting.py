"""Time limits of tools that wait."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_ASKED = 300
MAX_WAIT = 50.0
"""Clients give a call up after 60 s, some of them."""

Wait = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_ASKED,
        description=f"Seconds to wait; it answers after {MAX_WAIT:g} at the latest.",
    ),
]
