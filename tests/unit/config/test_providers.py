"""The `providers` section: where they are, and which variables hold their keys."""

from pathlib import Path

import pytest

from penstock.config import load
from penstock.errors import ConfigError
from penstock.model.lane import BUILT_IN
from penstock.model.providers import ADDRESSES, ProviderConfig
from penstock.research.providers import open_providers


def config(folder: Path, text: str) -> Path:
    path = folder / "penstock.yaml"
    path.write_text(text)
    return path


def test_what_is_configured_is_read_and_shown(tmp_path: Path) -> None:
    text = """\
providers:
  openalex: {base_url: "http://me:s3cret@localhost:81/x", api_key: OPENALEX_API_KEY}
  searxng: {base_url: https://search.example}
  arxiv:
"""
    loaded = load(file=config(tmp_path, text), environment={"OPENALEX_API_KEY": "k"})
    assert loaded.providers == {
        "openalex": ProviderConfig("http://me:s3cret@localhost:81/x", "OPENALEX_API_KEY"),
        "searxng": ProviderConfig("https://search.example"),
        "arxiv": ProviderConfig(),
    }
    rows = {name: value for name, value, _ in loaded.rows() if name.startswith("providers")}
    assert rows == {
        "providers.openalex.base_url": "http://me:***@localhost:81/x",
        "providers.openalex.api_key": "OPENALEX_API_KEY",
        "providers.searxng.base_url": "https://search.example",
    }


def test_providers_with_a_public_address_are_there_without_configuration() -> None:
    assert set(open_providers({})) == set(ADDRESSES) - {"searxng"}
    configured = open_providers({"searxng": ProviderConfig("https://search.example")})
    assert set(configured) == set(ADDRESSES)


def test_every_provider_has_a_lane_of_its_own() -> None:
    providers = open_providers({"searxng": ProviderConfig("https://search.example")})
    assert (
        {one.lane for one in providers.values()} == set(ADDRESSES) == set(ADDRESSES) & set(BUILT_IN)
    )
    assert all(name == one.name for name, one in providers.items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("providers: openalex", r"line 1: providers must be a mapping"),
        ("providers:\n  openalx: {}", r"line 2: .*no provider 'openalx'; there are: openalex, "),
        ("providers:\n  openalex: yes", r"line 2: providers: openalex must be a mapping"),
        ("providers:\n  openalex:\n    url: x", r"line 3: .* no key 'url'; there are: base_url"),
        ("providers:\n  openalex: {base_url: 5}", r"line 2: .*base_url must be a text"),
        ("providers:\n  openalex: {base_url: ftp://x}", r"line 2: .*base_url must be like"),
        ("providers:\n  openalex: {base_url: 'http://x:y'}", r"base_url must be like"),
        ("providers:\n  openalex: {base_url: 'http://x?key=1'}", r"without \? and #"),
        ("providers:\n  arxiv: {api_key: ARXIV_KEY}", r"line 2: .*arxiv takes no key"),
    ],
)
def test_what_is_wrong_is_said_and_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(file=config(tmp_path, text), environment={})


def test_key_written_into_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    path = config(tmp_path, "providers:\n  openalex: {api_key: s3cret-key-itself}")
    with pytest.raises(ConfigError, match="names the environment variable") as caught:
        load(file=path, environment={})
    assert "s3cret" not in str(caught.value)
