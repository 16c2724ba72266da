"""Put the MCP Inspector and the conformance suite of MCP into .venv/inspector, for the tests:
clients that are not of our SDK.

node_modules/.bin  holds mcp-inspector and conformance, and a node that is new enough for them
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(sys.prefix) / "inspector"
BIN = HOME / "node_modules" / ".bin"
PACKAGES = (
    "node@22",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
)


def main() -> None:
    if shutil.which("npm") is None:
        sys.exit("the MCP Inspector and the conformance suite need npm: put it on the PATH")
    HOME.mkdir(exist_ok=True)
    done = HOME / "done"
    with (HOME / "lock").open("w") as lock:  # tests run several at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == " ".join(PACKAGES):
            return
        quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
        subprocess.run(["npm", "install", "--prefix", str(HOME), *quiet, *PACKAGES], check=True)
        done.write_text(" ".join(PACKAGES))


if __name__ == "__main__":
    main()
