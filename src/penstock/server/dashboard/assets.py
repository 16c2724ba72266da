"""Static files: read once, named by content hash, cached by browsers."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import NamedTuple

from fastapi import Request
from starlette.responses import Response

from penstock.server.problems import Problem

FOLDER = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
BUNDLES = {"htmx.js": ("vendor/htmx.min.js", "vendor/hx-sse.min.js")}
"""Files served as one. htmx initializes as soon as the page is ready, and ignores an extension that
loads later."""
FOR_EVER = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    body: bytes
    media_type: str
    tag: str
    """Hash of the content."""


@functools.cache
def assets() -> dict[str, Asset]:
    """Load all files, by their path below the directory."""
    bodies = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES
    }
    for name, parts in BUNDLES.items():
        bodies[name] = b";\n".join(bodies.pop(part) for part in parts)
    return {
        name: Asset(body, TYPES[Path(name).suffix], hashlib.sha256(body).hexdigest()[:16])
        for name, body in bodies.items()
    }


def address(name: str) -> str:
    """URL of a file, which changes with its content."""
    return f"/static/{assets()[name].tag}/{name}"


def serve(request: Request, tag: str, name: str) -> Response:
    asset = assets().get(name)
    if asset is None or asset.tag != tag:
        raise Problem(404, "not-found", "there is no such file, or another version of it")
    headers = {
        "ETag": f'"{tag}"',
        "Cache-Control": FOR_EVER,
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.media_type, headers=headers)
