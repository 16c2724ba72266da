"""The product's user agent, also used for robots.txt rules."""

from __future__ import annotations

PRODUCT = "Penstock"
VERSION = "0.1.0rc1"


def user_agent(contact: str = "") -> str:
    """The header of every request. `contact` tells who runs it, for whoever wants to complain."""
    return f"{PRODUCT}/{VERSION} (+{contact})" if contact else f"{PRODUCT}/{VERSION}"
