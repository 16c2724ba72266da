"""Put Chromium into .venv/chromium, for the tests; nothing is installed system-wide.

bin/chromium  starts it with the libraries that lie beside it; put bin on the PATH

It is the headless shell: the same engine without windows, in half the processor time.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.debian import copy_libraries, unpacked

HOME = Path(sys.prefix) / "chromium"
# exec: whoever kills what was started kills Chromium.
START = """\
#!/bin/sh
LD_LIBRARY_PATH='{home}/lib' exec '{home}/program/chromium-headless-shell' "$@"
"""


def main() -> None:
    start = HOME / "bin" / "chromium"
    if start.exists():
        return
    with unpacked("Chromium", "chromium-headless-shell") as root:
        shutil.rmtree(HOME, ignore_errors=True)
        (HOME / "lib").mkdir(parents=True)
        copy_libraries(root, HOME / "lib")
        shutil.copytree(root / "usr/lib/chromium", HOME / "program")
    start.parent.mkdir()
    start.write_text(START.format(home=HOME))
    start.chmod(0o755)


if __name__ == "__main__":
    main()
