"""Buckets on loopback, and what is in them, past the code under test."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

from tests.support.database_servers import PrivateServer
from tests.support.gcs_server import GcsServer
from tests.support.run_folder import one_at_a_time, run_folder

KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""Any will do; without one nothing is sent."""


class S3Server(PrivateServer):
    """moto, in a process of its own."""

    def __init__(self) -> None:
        super().__init__("s3")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]


_STARTED: list[S3Server] = []
"""Kept: a process that nobody knows any more is complained about."""


@cache
def s3_url() -> str:
    """The server that all processes of the run share; each test uses a bucket of its own. Its end
    is the keeper's business: others may need it when who started it is done."""
    told = run_folder() / "s3-url"
    with one_at_a_time("s3"):
        if not told.exists():
            _STARTED.append(S3Server().start())
            atexit.unregister(_STARTED[-1].remove)
            told.write_text(_STARTED[-1].url)
        return told.read_text()


class Bucket:
    """An S3 bucket as another program sees it."""

    def __init__(self, url: str, name: str) -> None:
        import boto3

        self._client: Any = boto3.client(
            "s3",
            endpoint_url=url,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            region_name="us-east-1",
        )
        self._name = name
        self._client.create_bucket(Bucket=name)

    def names(self) -> list[str]:
        listed = self._client.list_objects_v2(Bucket=self._name)
        return sorted(one["Key"] for one in listed.get("Contents", []))

    def unfinished(self) -> list[Any]:
        """Uploads in parts that were not completed."""
        found = self._client.list_multipart_uploads(Bucket=self._name)
        return list(found.get("Uploads", []))

    def put(self, name: str, content: bytes) -> None:
        self._client.put_object(Bucket=self._name, Key=name, Body=content)

    def delete(self, name: str) -> None:
        self._client.delete_object(Bucket=self._name, Key=name)

    def close(self) -> None:
        self._client.close()


@contextmanager
def s3_bucket(name: str) -> Iterator[Bucket]:
    bucket = Bucket(s3_url(), name)
    yield bucket
    bucket.close()


class GcsBucket:
    """A bucket of the server in this process."""

    def __init__(self, server: GcsServer, name: str) -> None:
        self._objects = server.buckets.setdefault(name, {})

    def names(self) -> list[str]:
        return sorted(self._objects)

    def put(self, name: str, content: bytes) -> None:
        self._objects[name] = (content, datetime.now(UTC))
