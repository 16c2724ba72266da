"""Programs for the tests, taken from Debian's packages: unpacked into .venv, not installed.

Needs no root, except to fetch package lists where the machine has none yet.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unpacked(what: str, *packages: str) -> Iterator[Path]:
    """A folder with what is in `packages`, and in those they need and the machine does not have.
    Ends the program where that cannot be had, naming `what` the tests need it for."""
    if shutil.which("apt-get") is None:
        sys.exit(f"the tests need {what}: put it on the PATH")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        if not _download(folder, packages):
            if os.geteuid() == 0:
                subprocess.run(["apt-get", "update", "-qq"], check=True)
            if not _download(folder, packages):
                sys.exit(f"the tests need {what}: `apt-get install {' '.join(packages)}` first")
        root = folder / "unpacked"
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
        yield root


def copy_libraries(root: Path, to: Path) -> None:
    """All that lie in the folders of this kind of machine, or below them: NSS has one there."""
    for folder in ("lib", "usr/lib"):
        for documents in root.glob(f"{folder}/*-linux-*/**/*.so*"):
            shutil.copy2(documents, to / documents.name)


def _download(folder: Path, packages: tuple[str, ...]) -> bool:
    # What would be installed: the packages, and what is missing of those they need. Nothing is
    # where all are there already, and then their files are wanted all the same.
    command = ["apt-get", "--simulate", "--no-install-recommends", "install", *packages]
    plan = subprocess.run(command, capture_output=True, text=True)
    needed = {line.split()[1] for line in plan.stdout.splitlines() if line.startswith("Inst ")}
    if plan.returncode != 0:
        return False
    download = ["apt-get", "download", "-qq", *sorted(needed | set(packages))]
    return subprocess.run(download, cwd=folder, stderr=subprocess.DEVNULL).returncode == 0
