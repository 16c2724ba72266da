"""Which bucket: `s3://bucket/prefix` or `gs://bucket/prefix`; `?endpoint=` names a server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from penstock.model.errors import ConfigError

HOSTS = {"s3": "s3.amazonaws.com:443", "gs": "storage.googleapis.com:443"}
PORTS = {"http": 80, "https": 443}
VARIABLES = {"s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), "gs": ("STORAGE_EMULATOR_HOST",)}
"""What names another server where the address does not; the first that is set."""


@dataclass(slots=True, frozen=True)
class Address:
    scheme: str
    """`s3` or `gs`."""
    bucket: str
    prefix: str
    """What the name of each blob begins with; ends in a slash unless it is empty."""
    endpoint: str | None
    """Another server than Amazon's or Google's."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def root(self) -> str:
        return f"{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def host(self) -> str:
        """host:port of who is asked, for the probe of the lane."""
        if self.endpoint is None:
            return HOSTS[self.scheme]
        parts = urlsplit(self.endpoint)
        return f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}"


def is_address(blobs: str) -> bool:
    """Whether a setting names a bucket; else it is a folder."""
    return "://" in blobs


def bucket_address(url: str) -> Address:
    """ConfigError where it does not name a bucket."""
    parts = urlsplit(url)
    if parts.scheme not in HOSTS:
        raise ConfigError(
            f"no blob store for {parts.scheme}:// addresses: write a folder, s3://bucket/prefix "
            "or gs://bucket/prefix"
        )
    if "@" in parts.netloc:
        # Not quoted: it would be in logs, and in what `penstock config` shows.
        raise ConfigError(
            "blobs: leave credentials out of the address; the environment of the library has them"
        )
    if not parts.netloc or parts.fragment:
        raise ConfigError(f"blobs: {url!r} must be {parts.scheme}://bucket/prefix")
    named = (os.environ.get(variable) for variable in VARIABLES[parts.scheme])
    endpoint = next((_endpoint(value) for value in named if value), None)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name != "endpoint":
            raise ConfigError(f"blobs: {name!r} is no option of an address; there is: endpoint")
        endpoint = _endpoint(value)
    prefix = parts.path.strip("/")
    return Address(parts.scheme, parts.netloc, f"{prefix}/" if prefix else "", endpoint)


def _endpoint(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in PORTS or not parts.hostname or "@" in parts.netloc:
        raise ConfigError("blobs: endpoint must be http://host:port or https://host, without a key")
    return parts.geturl().rstrip("/")
