"""Text that every store takes."""

from __future__ import annotations


def is_storable(text: str) -> bool:
    """Whether it can be encoded: no lone surrogates, which stand for bytes that are no text."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def storable(text: str) -> str:
    """`text` without what cannot be encoded (lone surrogates) or stored (NUL)."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")
