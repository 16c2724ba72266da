"""Creates files and directories that only the current user can read, whatever the umask.

A queue holds payloads and the hashes of keys, originals are unmasked: other users of the machine
are to read neither. What is there already keeps its mode; `penstock doctor` says where that is too
wide.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE, FOLDER = 0o600, 0o700


def private_folder(path: Path) -> list[Path]:
    """Make a folder, and those above it that are missing; which of them were made, from the top."""
    missing: list[Path] = []
    above = path
    while not above.is_dir():
        missing.insert(0, above)
        above = above.parent
    for folder in missing:
        folder.mkdir(FOLDER, exist_ok=True)
    return missing


def open_private(path: str | Path, flags: int) -> int:
    """A descriptor, as `os.open` gives it; also an `opener` for `open`."""
    return os.open(path, flags | os.O_CLOEXEC, FILE)
