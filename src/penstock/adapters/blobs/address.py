"""Bucket addresses: `s3://bucket/prefix` or `gs://bucket/prefix`; `?endpoint=` names a server.
Object addresses, where a caller names one: `s3://bucket/prefix/name`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from penstock.errors import AddressRefused, ConfigError

HOSTS = {"s3": "s3.amazonaws.com:443", "gs": "storage.googleapis.com:443"}
PORTS = {"http": 80, "https": 443}
VARIABLES = {"s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), "gs": ("STORAGE_EMULATOR_HOST",)}
"""What names another server where the address does not; the first that is set."""


@dataclass(slots=True, frozen=True)
class BucketAddress:
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


@dataclass(slots=True, frozen=True)
class ObjectAddress:
    """An object that others have stored. Its name is taken as it is: nothing in it is escaped."""

    bucket: BucketAddress
    name: str

    @property
    def url(self) -> str:
        return f"{self.bucket.scheme}://{self.bucket.bucket}/{self.name}"


def is_object(url: str) -> bool:
    return url.startswith(tuple(f"{scheme}://" for scheme in HOSTS))


def object_address(url: str, buckets: Iterable[BucketAddress]) -> ObjectAddress:
    """AddressRefused unless one of these buckets holds it below its prefix. What is wrong is said
    without the address, which may hold personal data."""
    scheme, _, path = url.partition("://")
    bucket, _, name = path.partition("/")
    # Some servers and HTTP libraries take these for steps in a path, out of the prefix.
    if not url.isprintable() or any(part in ("", ".", "..") for part in name.split("/")):
        raise AddressRefused(
            "the address names no object: write s3://bucket/name or gs://bucket/name, without "
            "empty parts, dots that are a part of their own, and control characters"
        )
    for one in buckets:
        if (one.scheme, one.bucket) == (scheme, bucket) and name.startswith(one.prefix):
            return ObjectAddress(one, name)
    raise AddressRefused(
        "the object is in no bucket, or below no prefix, that may be named here: "
        "intake.kafka.buckets says which may"
    )


def is_address(blobs: str) -> bool:
    """Whether a setting names a bucket; else it is a folder."""
    return "://" in blobs


def bucket_address(url: str, setting: str = "blobs") -> BucketAddress:
    """ConfigError, by the name of the setting, where it does not name a bucket."""
    parts = urlsplit(url)
    if parts.scheme not in HOSTS:
        raise ConfigError(
            f"{setting}: no blob store for {parts.scheme}:// addresses: write "
            f"{'a folder, ' if setting == 'blobs' else ''}s3://bucket/prefix or gs://bucket/prefix"
        )
    if "@" in parts.netloc:
        # Not quoted: it would be in logs, and in what `penstock config` shows.
        raise ConfigError(
            f"{setting}: leave credentials out of the address; the environment of the library has "
            "them"
        )
    if not parts.netloc or parts.fragment:
        raise ConfigError(f"{setting}: {url!r} must be {parts.scheme}://bucket/prefix")
    named = (os.environ.get(variable) for variable in VARIABLES[parts.scheme])
    endpoint = next((_endpoint(value, setting) for value in named if value), None)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name != "endpoint":
            raise ConfigError(f"{setting}: {name!r} is no option of an address; there is: endpoint")
        endpoint = _endpoint(value, setting)
    prefix = parts.path.strip("/")
    return BucketAddress(parts.scheme, parts.netloc, f"{prefix}/" if prefix else "", endpoint)


def _endpoint(url: str, setting: str) -> str:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in PORTS or not parts.hostname or "@" in parts.netloc:
        raise ConfigError(
            f"{setting}: endpoint must be http://host:port or https://host, without a key"
        )
    return parts.geturl().rstrip("/")
