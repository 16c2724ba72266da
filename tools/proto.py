"""Generate the code of `proto/`: `python -m tools.proto`, or `make proto`.

Messages only: the service has one method, which is named where it is served and called.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parents[1]
PROTO = ROOT / "proto"


def generate(target: Path) -> None:
    """Into `target`, under the path that each file has in `proto/`."""
    files = [str(file.relative_to(PROTO)) for file in sorted(PROTO.rglob("*.proto"))]
    outputs = [f"--python_out={target}", f"--pyi_out={target}"]
    if protoc.main(["protoc", f"-I{PROTO}", *outputs, *files]) != 0:
        sys.exit("protoc has refused a file of proto/")


if __name__ == "__main__":
    generate(ROOT / "src")
