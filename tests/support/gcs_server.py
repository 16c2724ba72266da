"""Google Cloud Storage's JSON API over loopback: the requests that storing, reading, listing and
deleting objects take, as Google documents them. In memory, for as long as it runs.

    bucket -> name -> (content, when it was stored)
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

Objects = dict[str, tuple[bytes, datetime]]
API, UPLOAD, DOWNLOAD = "/storage/v1/b/", "/upload/storage/v1/b/", "/download/storage/v1/b/"
PAGE = 2
"""Objects in a page of a listing: so few that every test that lists turns pages."""


class GcsServer:
    def __init__(self) -> None:
        self.buckets: dict[str, Objects] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.buckets = self.buckets  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="gcs")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet: in two, the second waits for the first's receipt

    def log_message(self, *arguments: Any) -> None:
        """Not into the output of the tests."""

    def do_GET(self) -> None:
        path, query = self._asked()
        if path.startswith(DOWNLOAD):
            found = self._object(path.removeprefix(DOWNLOAD))
            return self._missing() if found is None else self._content(found[2])
        bucket, _, rest = path.removeprefix(API).partition("/")
        if bucket not in self._buckets:
            return self._missing()
        if not rest:
            return self._json({"kind": "storage#bucket", "name": bucket})
        if rest == "o":
            return self._list(bucket, query)
        found = self._object(f"{bucket}/{rest}")
        return self._missing() if found is None else self._json(self._resource(*found[:2]))

    def do_POST(self) -> None:
        path, query = self._asked()
        body = self.rfile.read(int(self.headers["content-length"]))
        bucket = path.removeprefix(UPLOAD).partition("/")[0]
        if bucket not in self._buckets:
            return self._missing()
        match query:
            case {"upload_id": name}:  # all of it in one piece
                first, _, rest = self.headers["content-range"].removeprefix("bytes ").partition("-")
                assert (first, rest) == ("0", f"{len(body) - 1}/{len(body)}")
            case {"uploadType": "resumable", "name": name}:
                path = f"{UPLOAD}{bucket}/o?uploadType=resumable&upload_id={quote(name, safe='')}"
                return self._answer(200, b"", location=f"http://{self.headers['host']}{path}")
            case {"uploadType": "multipart"}:  # what the object is called, then what is in it
                boundary = b"--" + str(self.headers.get_param("boundary")).encode()
                parts = [part.partition(b"\n\n")[2] for part in body.split(boundary)[1:-1]]
                if len(parts) != 2:
                    return self._answer(400, b'{"error": {"code": 400, "message": "parts"}}')
                name, body = json.loads(parts[0])["name"], parts[1].removesuffix(b"\n")
            case _:
                raise ValueError(f"no upload that Google documents: {query}")
        self._buckets[bucket][name] = (body, datetime.now(UTC))
        return self._json(self._resource(bucket, name))

    def do_DELETE(self) -> None:
        path, _ = self._asked()
        found = self._object(path.removeprefix(API))
        if found is None:
            return self._missing()
        del self._buckets[found[0]][found[1]]
        return self._answer(204, b"")

    @property
    def _buckets(self) -> dict[str, Objects]:
        buckets: dict[str, Objects] = self.server.buckets  # type: ignore[attr-defined]
        return buckets

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        return parts.path, {name: values[-1] for name, values in parse_qs(parts.query).items()}

    def _object(self, path: str) -> tuple[str, str, bytes] | None:
        """`bucket/o/name`, the name quoted."""
        bucket, _, name = path.partition("/o/")
        name = unquote(name)
        known = self._buckets.get(bucket, {})
        return (bucket, name, known[name][0]) if name in known else None

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        known = self._buckets[bucket]
        first = query.get("pageToken", "")
        names = [
            name
            for name in sorted(known)
            if name.startswith(query.get("prefix", "")) and name >= first
        ]
        page: dict[str, Any] = {
            "kind": "storage#objects",
            "items": [self._resource(bucket, name) for name in names[:PAGE]],
        }
        if len(names) > PAGE:
            page["nextPageToken"] = names[PAGE]
        self._json(page)

    def _resource(self, bucket: str, name: str) -> dict[str, Any]:
        content, stored_at = self._buckets[bucket][name]
        when = stored_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": name,
            "size": str(len(content)),
            "updated": when,
            "timeCreated": when,
        }

    def _content(self, content: bytes) -> None:
        wanted = self.headers["range"]
        if not wanted:
            return self._answer(200, content)
        start, _, end = wanted.removeprefix("bytes=").partition("-")
        return self._answer(206, content[int(start) : int(end) + 1])

    def _missing(self) -> None:
        self._answer(404, b'{"error": {"code": 404, "message": "Not Found"}}')

    def _json(self, value: Any) -> None:
        self._answer(200, json.dumps(value).encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
