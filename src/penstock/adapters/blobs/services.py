"""Opens S3 and Google Cloud Storage through fsspec. Imported late: each takes half a second."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

from penstock.adapters.blobs.address import BucketAddress
from penstock.errors import ConfigError

CONNECT_SECONDS = 5.0
TRIES = 3
_NEEDS = {"s3": ("s3fs", "s3"), "gs": ("gcsfs", "gcs")}
"""The package, and the extra it comes with."""


class BlobService(NamedTuple):
    files: Any
    """fsspec's file system."""
    errors: tuple[type[Exception], ...]
    """What it raises when a request comes to nothing."""
    stored_at: str
    """Where a listing says when an object was stored."""


def require(address: BucketAddress) -> None:
    """ConfigError unless what the address needs is installed."""
    package, extra = _NEEDS[address.scheme]
    if find_spec(package) is None:
        raise ConfigError(f"{address.scheme}:// blobs need: pip install 'penstock[{extra}]'")


def service(address: BucketAddress, patience: float) -> BlobService:
    """Blocks: it reads credentials. Nothing of what it lists or finds is cached."""
    return _s3(address, patience) if address.scheme == "s3" else _gcs(address)


def _s3(address: BucketAddress, patience: float) -> BlobService:
    import aiohttp
    from botocore.exceptions import BotoCoreError, ClientError
    from s3fs import S3FileSystem

    files = S3FileSystem(
        endpoint_url=address.endpoint,
        config_kwargs={
            "connect_timeout": min(CONNECT_SECONDS, patience),
            "read_timeout": patience,
            "retries": {"mode": "standard", "total_max_attempts": TRIES},
        },
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    files.retries = 1  # above are enough: what is left is for the queue to retry
    return BlobService(
        files, (BotoCoreError, ClientError, aiohttp.ClientError, OSError), "LastModified"
    )


def _gcs(address: BucketAddress) -> BlobService:
    import aiohttp
    from gcsfs.core import GCSFileSystem
    from gcsfs.retry import HttpError, NonRetryableError
    from google.auth.exceptions import GoogleAuthError

    files = GCSFileSystem(
        endpoint_url=address.endpoint,
        token="anon" if address.endpoint else None,  # only Google is given Google's keys
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    # ValueError is what it makes of a 400, KeyError of an answer that is not Google's.
    errors = (
        HttpError,
        NonRetryableError,
        GoogleAuthError,
        aiohttp.ClientError,
        OSError,
        ValueError,
        KeyError,
    )
    return BlobService(files, errors, "mtime")
