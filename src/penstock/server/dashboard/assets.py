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
"""Several as one. htmx looks at the page in its first free moment, and an extension that arrives
later than that is never asked."""
FOR_EVER = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    body: bytes
    media_type: str
    tag: str
    """Changes with the content."""


@functools.cache
def assets() -> dict[str, Asset]:
    """By their path below the folder."""
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
    """Where a page loads it from. A changed file has another address."""
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
