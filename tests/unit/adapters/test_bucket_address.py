"""`blobs: s3://...`: what it names, and what is refused."""

import sys
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.adapters.blobs.address import bucket_address, is_address
from penstock.config import load
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "bucket", "prefix", "host"),
    [
        ("s3://bucket", "bucket", "", "s3.amazonaws.com:443"),
        ("s3://bucket/", "bucket", "", "s3.amazonaws.com:443"),
        ("gs://bucket/a/b/", "bucket", "a/b/", "storage.googleapis.com:443"),
        ("s3://bucket/a?endpoint=http://minio:9000", "bucket", "a/", "minio:9000"),
        ("s3://bucket/a?endpoint=https://minio.example", "bucket", "a/", "minio.example:443"),
    ],
)
def test_address_names_bucket_prefix_and_server(
    url: str, bucket: str, prefix: str, host: str
) -> None:
    address = bucket_address(url)
    assert is_address(url)
    assert (address.bucket, address.prefix, address.host) == (bucket, prefix, host)
    assert str(address) == url.partition("?")[0].rstrip("/")


@pytest.mark.parametrize(
    ("url", "variable", "value", "endpoint"),
    [
        ("s3://b", "AWS_ENDPOINT_URL", "http://minio:9000/", "http://minio:9000"),
        ("s3://b", "AWS_ENDPOINT_URL_S3", "http://minio:9000", "http://minio:9000"),
        ("s3://b?endpoint=http://other:1", "AWS_ENDPOINT_URL", "http://minio", "http://other:1"),
        ("gs://b", "STORAGE_EMULATOR_HOST", "localhost:4443", "http://localhost:4443"),
        ("gs://b", "AWS_ENDPOINT_URL", "http://minio:9000", None),
    ],
)
def test_server_is_named_by_the_address_before_the_environment(
    url: str, variable: str, value: str, endpoint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert bucket_address(url).endpoint == endpoint


@pytest.mark.parametrize("folder", ["blobs", "/var/blobs", "~/blobs", "./s3/gs"])
def test_folder_is_no_address(folder: str) -> None:
    assert not is_address(folder)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("az://container/x", "no blob store for az:// addresses"),
        ("s3:///prefix", "must be s3://bucket/prefix"),
        ("s3://key:hidden@bucket/x", "leave credentials out of the address"),
        ("s3://bucket/x?key=hidden", "'key' is no option of an address; there is: endpoint"),
        ("s3://bucket/x?endpoint=ftp://minio", "endpoint must be http://host:port"),
        ("s3://bucket/x?endpoint=http://key:hidden@minio", "endpoint must be http://host:port"),
        ("s3://bucket/x?endpoint=", "endpoint must be http://host:port"),
    ],
)
def test_mistake_is_named_and_no_secret_quoted(tmp_path: Path, url: str, message: str) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", blobs=url)
    with pytest.raises(ConfigError) as raised:
        app.use("documents")
    assert message in str(raised.value)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(("url", "extra"), [("s3://bucket", "s3"), ("gs://bucket", "gcs")])
def test_missing_extra_is_named(
    tmp_path: Path, url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"{extra}fs", None)
    app = Penstock(f"sqlite:///{tmp_path}/jobs.db", blobs=url)
    with pytest.raises(ConfigError, match=rf"pip install 'penstock\[{extra}\]'"):
        app.use("documents")


def test_secrets_of_store_and_blobs_are_hidden_where_settings_are_shown() -> None:
    shown = load(
        {"store": "postgresql://me:hidden@db/x", "blobs": "s3://key:hidden@bucket"}, environment={}
    ).rows()
    values = {name: value for name, value, _ in shown}
    assert values["store"] == "postgresql://me:***@db/x"
    assert values["blobs"] == "s3://key:***@bucket"
