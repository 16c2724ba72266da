"""Text that every store takes."""

from __future__ import annotations


def storable(text: str) -> str:
    """`text` without what cannot be encoded (lone surrogates) or stored (NUL)."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")
