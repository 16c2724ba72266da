"""Formats a stored error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def in_words(error: Mapping[str, Any], *, places: bool = False) -> str:
    """An error as `Job.error` keeps it, with the errors it came from or consists of, in one
    sentence; with `places`, also where each was raised."""
    said = f"{error['type']}: {error['message']}" if error.get("message") else error["type"]
    if places and error.get("place"):
        said += f" at {error['place']}"
    members = [in_words(one, places=places) for one in error.get("members", ())]
    if left_out := error.get("left_out"):
        members.append(f"{left_out:,} more")
    if members:
        said += f" [{'; '.join(members)}]"
    for name, relation in (("cause", "caused by"), ("context", "while handling")):
        if name in error:
            said += f" ({relation} {in_words(error[name], places=places)})"
    return said
