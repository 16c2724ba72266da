"""Settings from arguments, the environment and penstock.yaml."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from penstock.config import hide_secrets, load
from penstock.model.errors import ConfigError
from penstock.model.server import ServerConfig
from penstock.model.settings import Settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str, name: str = "penstock.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_everything_has_a_default() -> None:
    config = load(environment={})

    assert config.queue == "sqlite:///penstock.db"
    assert config.settings == Settings()
    assert set(config.sources.values()) == {"default"}
    assert set(config.sources) == {"queue"} | {field.name for field in fields(Settings)}


def test_arguments_win_over_environment_over_file_over_default(folder: Path) -> None:
    write(folder, "max_workers: 1\nlease_seconds: 2\nprefetch_seconds: 3\n")
    environment = {"PENSTOCK_MAX_WORKERS": "4", "PENSTOCK_LEASE_SECONDS": "5"}
    config = load({"max_workers": 6}, environment=environment)

    assert config.settings.max_workers == 6
    assert config.settings.lease_seconds == 5
    assert config.settings.prefetch_seconds == 3
    assert config.settings.grace_seconds == 25
    assert config.sources["max_workers"] == "argument"
    assert config.sources["lease_seconds"] == "environment PENSTOCK_LEASE_SECONDS"
    assert config.sources["prefetch_seconds"] == "penstock.yaml line 3"
    assert config.sources["grace_seconds"] == "default"


def test_queue_comes_from_the_same_places(folder: Path) -> None:
    assert load({"queue": "sqlite:///a.db"}, environment={"PENSTOCK_QUEUE": "x"}).queue == (
        "sqlite:///a.db"
    )
    assert load(environment={"PENSTOCK_QUEUE": "sqlite:///b.db"}).queue == "sqlite:///b.db"
    write(folder, "queue: sqlite:///c.db")
    assert load(environment={}).queue == "sqlite:///c.db"


def test_arguments_and_variables_that_are_empty_count_as_not_given() -> None:
    config = load({"max_workers": None}, environment={"PENSTOCK_QUEUE": ""})

    assert (config.settings.max_workers, config.sources["queue"]) == (10, "default")


def test_lines_are_counted_through_comments_and_blank_lines(folder: Path) -> None:
    write(folder, "# hello\n\nqueue: sqlite:///x.db\n\n# more\nmax_workers: 2\n")
    sources = load(environment={}).sources

    assert sources["queue"] == "penstock.yaml line 3"
    assert sources["max_workers"] == "penstock.yaml line 6"


def test_file_can_be_named_by_argument_or_variable(folder: Path) -> None:
    path = write(folder, "max_workers: 2", "mine.yaml")
    write(folder, "max_workers: 3")

    assert load(file=path, environment={}).settings.max_workers == 2
    assert load(environment={"PENSTOCK_CONFIG": str(path)}).settings.max_workers == 2
    assert load(environment={}).settings.max_workers == 3
    assert load(file=path, environment={}).sources["max_workers"] == f"{path} line 1"


def test_file_that_was_named_must_exist(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config file .*missing\.yaml"):
        load(file="missing.yaml", environment={})
    with pytest.raises(ConfigError, match=r"missing\.yaml"):
        load(environment={"PENSTOCK_CONFIG": "missing.yaml"})


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_empty_file_sets_nothing(folder: Path, text: str) -> None:
    write(folder, text)

    assert set(load(environment={}).sources.values()) == {"default"}


def test_file_that_is_no_yaml_is_refused_with_its_line_and_on_one_line(folder: Path) -> None:
    path = write(folder, "max_workers: 2\nlanes: [1, 2\n")
    with pytest.raises(ConfigError) as caught:
        load(file=path, environment={})
    assert re.fullmatch(r".*penstock\.yaml line 3 is not YAML: expected .*", str(caught.value))


@pytest.mark.parametrize("text", ["- a\n- b\n", "just text", "5"])
def test_file_that_holds_no_settings_is_refused(folder: Path, text: str) -> None:
    write(folder, text)

    with pytest.raises(ConfigError, match=r"penstock\.yaml must hold settings"):
        load(environment={})


@pytest.mark.parametrize(
    "text", ["a: b: c", "queue: [", "queue: !!python/object:os.x {}", "? [1]\n: 2"]
)
def test_file_that_is_not_yaml_is_refused(folder: Path, text: str) -> None:
    write(folder, text)

    with pytest.raises(ConfigError, match=r"penstock\.yaml"):
        load(environment={})


@pytest.mark.parametrize("content", [b"queue: \xff\xfe\n", b"\x00\x01\x02"])
def test_file_that_is_no_text_is_refused(folder: Path, content: bytes) -> None:
    (folder / "penstock.yaml").write_bytes(content)

    with pytest.raises(ConfigError, match=r"penstock\.yaml"):
        load(environment={})


def test_folder_in_place_of_the_file_is_refused(folder: Path) -> None:
    (folder / "penstock.yaml").mkdir()

    with pytest.raises(ConfigError, match="cannot read"):
        load(environment={})


def test_unknown_setting_is_refused_with_a_suggestion(folder: Path) -> None:
    write(folder, "queue: x\nmax_worker: 5\n")

    with pytest.raises(ConfigError) as refusal:
        load(environment={})
    assert str(refusal.value) == (
        "penstock.yaml line 2: unknown setting 'max_worker'; did you mean max_workers?"
    )
    with pytest.raises(ConfigError, match=r"argument: .* did you mean lease_seconds"):
        load({"lease_second": 5}, environment={}, file=write(folder, "", "empty.yaml"))


@pytest.mark.parametrize("text", ["zzz: 1", "1: 2", "null: 1"])
def test_setting_unlike_any_other_is_refused_with_the_list(folder: Path, text: str) -> None:
    write(folder, text)

    with pytest.raises(ConfigError, match="there are: queue, max_workers"):
        load(environment={})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_workers", "many"),
        ("max_workers", 1.5),
        ("max_workers", True),
        ("max_workers", [1]),
        ("max_workers", float("inf")),
        ("lease_seconds", "soon"),
        ("lease_seconds", False),
        ("lease_seconds", {}),
        pytest.param("lease_seconds", 10**400, id="lease_seconds-huge"),
        ("durable", "maybe"),
        ("durable", 2),
        ("queue", 5),
        ("queue", ""),
    ],
)
def test_wrong_type_is_refused_and_says_where_it_came_from(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"argument: {name} must be"):
        load({name: value}, environment={})


def test_wrong_type_in_file_and_environment_says_where(folder: Path) -> None:
    with pytest.raises(ConfigError, match="environment PENSTOCK_MAX_WORKERS: max_workers must be"):
        load(environment={"PENSTOCK_MAX_WORKERS": "x"})
    write(folder, "\nmax_workers: x")
    with pytest.raises(ConfigError, match=r"penstock\.yaml line 2: max_workers must be"):
        load(environment={})


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("1", True), ("False", False), ("0", False), ("TRUE", True)]
)
def test_switches_are_read_from_text(text: str, value: bool) -> None:
    assert load(environment={"PENSTOCK_DURABLE": text}).settings.durable is value


def test_numbers_are_read_from_text_and_whole_floats() -> None:
    settings = load({"max_workers": 4.0}, environment={"PENSTOCK_LEASE_SECONDS": "1.5"}).settings

    assert (settings.max_workers, settings.lease_seconds) == (4, 1.5)
    assert isinstance(settings.max_workers, int)


def test_impossible_value_is_refused_wherever_it_came_from() -> None:
    with pytest.raises(ConfigError, match="max_workers"):
        load(environment={"PENSTOCK_MAX_WORKERS": "0"})
    with pytest.raises(ConfigError, match="lease_seconds"):
        load(environment={"PENSTOCK_LEASE_SECONDS": "nan"})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:s3cret@localhost/0", "redis://:***@localhost/0"),
        ("postgresql://me:s3cret@db:5432/q?x=1", "postgresql://me:***@db:5432/q?x=1"),
        ("postgresql://me:s3:cr@et@db/q", "postgresql://me:***@db/q"),
        ("postgresql://me@db/q", "postgresql://me@db/q"),
        ("postgresql://me:s3cret@[::1]:5432/q", "postgresql://me:***@[::1]:5432/q"),
    ],
)
def test_secrets_are_hidden(url: str, shown: str) -> None:
    assert hide_secrets(url) == shown


def test_rows_show_every_setting_with_its_source_and_no_secret() -> None:
    store = "postgresql://me:s3cret@db/q"
    given = {"queue": "redis://:s3cret@host/0", "store": store, "max_workers": 3}
    config = load(given, environment={})
    rows = {name: (value, source) for name, value, source in config.rows()}

    assert rows["queue"] == ("redis://:***@host/0", "argument")
    assert rows["store"] == ("postgresql://me:***@db/q", "argument")
    assert rows["max_workers"] == (3, "argument")
    assert rows["durable"] == (True, "default")
    assert len(rows) == 1 + len(fields(Settings)) + len(fields(ServerConfig))
    assert "s3cret" not in str(config.rows())


def test_what_may_be_fetched_is_a_list_in_the_file_and_a_text_elsewhere(folder: Path) -> None:
    (folder / "penstock.yaml").write_text("\nfetch:\n  allow: ['a.example:80', '[::1]:81']\n")
    config = load(environment={})
    assert config.settings.fetch_allow == "a.example:80,[::1]:81"
    assert config.sources["fetch_allow"] == "penstock.yaml line 2"
    assert load(environment={"PENSTOCK_FETCH_ALLOW": "b:1"}).settings.fetch_allow == "b:1"
    assert load({"fetch_allow": "c:1"}, environment={}).settings.fetch_allow == "c:1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fetch: {deny: [a]}", "fetch has no key 'deny'; there is: allow"),
        ("fetch: {allow: [80]}", "fetch: allow must be a list of host:port"),
        ("fetch: [a]", "fetch must be a mapping with `allow`"),
    ],
)
def test_fetch_section_that_is_wrong_is_refused(folder: Path, text: str, says: str) -> None:
    (folder / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"penstock.yaml line 1: {says}")):
        load(environment={})


def test_rows_tell_what_is_said_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "penstock.yaml"
    file.write_text("server:\n  port: 80\n  hosts: [a.example, b.example]\n")
    rows = {name: (value, source) for name, value, source in load({}, file=file).rows()}
    assert rows["server.port"] == (80, f"{file} line 1")
    assert rows["server.hosts"] == ("a.example, b.example", f"{file} line 1")
    assert rows["server.host"] == ("127.0.0.1", "default")
