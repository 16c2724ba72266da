"""Blob names (see `penstock.ports.blobs.key_of`): the hash of the content, and a random suffix.

Two uploads of the same bytes are two blobs, so that one can be deleted without asking about the
other. A name of another shape is not ours, and is never touched.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[0-9a-f]{32}")
_KEY = re.compile(rf"[0-9a-f]{{64}}-{_NUMBER.pattern}")


def is_key(name: str) -> bool:
    return _KEY.fullmatch(name) is not None


def is_number(name: str) -> bool:
    """Whether it can be the number of a blob whose content is not all there yet."""
    return _NUMBER.fullmatch(name) is not None
