"""Put the MCP Inspector and the conformance suite of MCP into .venv/inspector, for the tests:
clients that are not of our SDK.

node_modules/.bin  holds mcp-inspector and conformance, and a node that is new enough for them
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(sys.prefix) / "inspector"
BIN = HOME / "node_modules" / ".bin"
PACKAGES = (
    "node@22",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
)
TRIES = 3
TRY_SECONDS = 500.0
"""On a machine that has much else to do it takes one and a half minutes."""
PAUSE_SECONDS = 5.0


def install() -> None:
    """Try several times: a registry may fail, or stop answering, for a moment."""
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    patient = ["--fetch-retries=4", "--fetch-timeout=60000"]
    for left in reversed(range(TRIES)):
        shutil.rmtree(HOME / "node_modules", ignore_errors=True)
        try:
            subprocess.run(
                ["npm", "install", "--prefix", str(HOME), *quiet, *patient, *PACKAGES],
                check=True,
                timeout=TRY_SECONDS,
            )
            return
        except subprocess.SubprocessError as error:
            if not left:
                raise
            sys.stderr.write(f"{error}; trying again\n")
            time.sleep(PAUSE_SECONDS)


def main() -> None:
    if shutil.which("npm") is None:
        sys.exit("the MCP Inspector and the conformance suite need npm: put it on the PATH")
    HOME.mkdir(exist_ok=True)
    done = HOME / "done"
    with (HOME / "lock").open("w") as lock:  # tests run several at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == " ".join(PACKAGES):
            return
        install()
        done.write_text(" ".join(PACKAGES))


if __name__ == "__main__":
    main()
