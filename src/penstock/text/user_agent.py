"""The product's user agent: also the name that the rules of a robots.txt are looked up by."""

from __future__ import annotations

PRODUCT = "Penstock"
VERSION = "0.1.0"


def user_agent(contact: str = "") -> str:
    """The header of every request. `contact` tells who runs it, for whoever wants to complain."""
    return f"{PRODUCT}/{VERSION} (+{contact})" if contact else f"{PRODUCT}/{VERSION}"
