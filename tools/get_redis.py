"""Put a real Redis 7 server into .venv/redis, for the tests; nothing is installed system-wide.

A redis-server on the PATH is used as it is. Else it is unpacked from Debian's package.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.debian import copy_libraries, unpacked

HOME = Path(sys.prefix) / "redis"


def main() -> None:
    if (HOME / "redis-server").exists() or shutil.which("redis-server"):
        return
    with unpacked("a Redis 7 server", "redis-tools") as root:
        HOME.mkdir(exist_ok=True)
        copy_libraries(root, HOME)
        # redis-tools holds it: the server is the same binary as the checker, under another name.
        shutil.copy2(root / "usr/bin/redis-check-rdb", HOME / "redis-server")


if __name__ == "__main__":
    main()
