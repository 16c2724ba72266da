"""Put a real Redis 7 server into .venv/redis, for the tests; nothing is installed system-wide.

A redis-server on the PATH is used as it is. Else Debian's package and the two libraries it
needs are unpacked beside each other. Needs no root, except to fetch package lists where the
machine has none yet.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ("redis-tools", "libjemalloc2", "liblzf1")  # redis-tools holds the server's binary
HOME = Path(sys.prefix) / "redis"


def main() -> None:
    if (HOME / "redis-server").exists() or shutil.which("redis-server"):
        return
    if shutil.which("apt-get") is None:
        sys.exit("the tests need a Redis 7 server: put redis-server on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        if not _download(folder):
            if os.geteuid() == 0:
                subprocess.run(["apt-get", "update", "-qq"], check=True)
            if not _download(folder):
                sys.exit("the tests need a Redis 7 server: `apt-get install redis-server` first")
        unpacked = Path(folder) / "unpacked"
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(unpacked)], check=True)
        HOME.mkdir(exist_ok=True)
        for library in unpacked.glob("usr/lib/*/*.so*"):
            shutil.copy2(library, HOME / library.name)
        # The server is the same binary as the checker, under another name.
        shutil.copy2(unpacked / "usr/bin/redis-check-rdb", HOME / "redis-server")


def _download(folder: str) -> bool:
    command = ["apt-get", "download", "-qq", *PACKAGES]
    return subprocess.run(command, cwd=folder, stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    main()
