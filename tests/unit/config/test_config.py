"""Settings from arguments, the environment and penstock.yaml."""

import re
from pathlib import Path
from typing import Any

import pytest

from penstock.config import Config, hide_secrets, load
from penstock.config.setting_names import PLAIN, PLAIN_SECTIONS, TOP
from penstock.errors import ConfigError
from penstock.model.section import keys


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
    assert config == Config()
    assert config.sources == {}


def test_every_name_that_needs_no_section_is_unique() -> None:
    names = [name for section in PLAIN_SECTIONS.values() for name in keys(section)]
    assert len(names) == len(set(names))
    assert not {*names, *TOP} & set(keys(Config)) - set(TOP)
    assert set(names) <= set(PLAIN)


def test_arguments_win_over_environment_over_file_over_default(folder: Path) -> None:
    write(folder, "engine:\n  max_workers: 1\n  lease_seconds: 2\n  prefetch_seconds: 3\n")
    environment = {"PENSTOCK_MAX_WORKERS": "4", "PENSTOCK_LEASE_SECONDS": "5"}
    config = load({"max_workers": 6}, environment=environment)

    assert config.engine.max_workers == 6
    assert config.engine.lease_seconds == 5
    assert config.engine.prefetch_seconds == 3
    assert config.engine.grace_seconds == 25
    assert config.source("engine.max_workers") == "argument"
    assert config.source("engine.lease_seconds") == "environment PENSTOCK_LEASE_SECONDS"
    assert config.source("engine.prefetch_seconds") == "penstock.yaml line 4"
    assert config.source("engine.grace_seconds") == "default"


def test_queue_comes_from_the_same_places(folder: Path) -> None:
    assert load({"queue": "sqlite:///a.db"}, environment={"PENSTOCK_QUEUE": "x"}).queue == (
        "sqlite:///a.db"
    )
    assert load(environment={"PENSTOCK_QUEUE": "sqlite:///b.db"}).queue == "sqlite:///b.db"
    write(folder, "queue: sqlite:///c.db")
    assert load(environment={}).queue == "sqlite:///c.db"


def test_arguments_and_variables_that_are_empty_count_as_not_given() -> None:
    config = load({"max_workers": None}, environment={"PENSTOCK_QUEUE": ""})

    assert (config.engine.max_workers, config.source("queue")) == (10, "default")


def test_lines_are_counted_through_comments_and_blank_lines(folder: Path) -> None:
    write(folder, "# hello\n\nqueue: sqlite:///x.db\n\n# more\nengine:\n  max_workers: 2\n")
    sources = load(environment={}).sources

    assert sources["queue"] == "penstock.yaml line 3"
    assert sources["engine.max_workers"] == "penstock.yaml line 7"


def test_file_can_be_named_by_argument_or_variable(folder: Path) -> None:
    path = write(folder, "engine: {max_workers: 2}", "mine.yaml")
    write(folder, "engine: {max_workers: 3}")

    assert load(file=path, environment={}).engine.max_workers == 2
    assert load(environment={"PENSTOCK_CONFIG": str(path)}).engine.max_workers == 2
    assert load(environment={}).engine.max_workers == 3
    assert load(file=path, environment={}).sources["engine.max_workers"] == f"{path} line 1"


def test_file_that_was_named_must_exist(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config file .*missing\.yaml"):
        load(file="missing.yaml", environment={})
    with pytest.raises(ConfigError, match=r"missing\.yaml"):
        load(environment={"PENSTOCK_CONFIG": "missing.yaml"})


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_empty_file_sets_nothing(folder: Path, text: str) -> None:
    write(folder, text)

    assert load(environment={}).sources == {}


def test_file_that_is_no_yaml_is_refused_with_its_line_and_on_one_line(folder: Path) -> None:
    path = write(folder, "queue: x\nlanes: [1, 2\n")
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

    with pytest.raises(ConfigError, match="there are: queue, store, blobs, engine, documents"):
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
    write(folder, "\nengine:\n  max_workers: x")
    with pytest.raises(ConfigError, match=r"penstock\.yaml line 3: max_workers must be"):
        load(environment={})


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("1", True), ("False", False), ("0", False), ("TRUE", True)]
)
def test_switches_are_read_from_text(text: str, value: bool) -> None:
    assert load(environment={"PENSTOCK_DURABLE": text}).engine.durable is value


def test_numbers_are_read_from_text_and_whole_floats() -> None:
    settings = load({"max_workers": 4.0}, environment={"PENSTOCK_LEASE_SECONDS": "1.5"}).engine

    assert (settings.max_workers, settings.lease_seconds) == (4, 1.5)
    assert isinstance(settings.max_workers, int)


def test_impossible_value_is_refused_wherever_it_came_from() -> None:
    with pytest.raises(ConfigError, match="max_workers"):
        load(environment={"PENSTOCK_MAX_WORKERS": "0"})
    with pytest.raises(ConfigError, match="lease_seconds"):
        load(environment={"PENSTOCK_LEASE_SECONDS": "nan"})


@pytest.mark.parametrize(
    "line",
    [
        "engine: {max_workers: -1}",
        "engine: {max_workers: 1001}",
        "engine: {reserved_workers: 10}",
        "engine: {lease_seconds: .inf}",
        "documents: {search_min_coverage: 2}",
        "documents: {scans: ocrr}",
        "logging: {log_format: xml}",
        "logging: {log_errors: none}",
        "outbound: {contact: a b}",
        "documents: {ocr_languages: 'eng,jpn'}",
        "research: {search_providers: [openalx]}",
        "research: {search_providers: [openalex, searxng]}",
        "research: {search_providers: openalex}",
    ],
)
def test_impossible_value_is_refused_with_its_line(folder: Path, line: str) -> None:
    section, _, setting = line.partition(": {")
    write(folder, f"{section}:\n  {setting.removesuffix('}')}\n")
    name = setting.partition(":")[0]
    with pytest.raises(ConfigError, match=rf"^penstock\.yaml line 2: {name}\b") as refusal:
        load(environment={})
    assert refusal.value.setting == f"{section}.{name}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "max_workers: 4",
            "max_workers belongs in the section engine: write `engine: {max_workers: 4}`",
        ),
        (
            "search_providers: openalex, documents",
            "search_providers belongs in the section research: "
            "write `research: {search_providers: [openalex, documents]}`",
        ),
        (
            "engine: {log_format: json}",
            "log_format belongs in the section logging: write `logging: {log_format: json}`",
        ),
        (
            "documents: {store: 'sqlite:///a.db'}",
            "store belongs at the top level, in no section: write `store: 'sqlite:///a.db'`",
        ),
        ("engine: {max_worker: 4}", "engine has no key 'max_worker'; did you mean max_workers?"),
        ("engine: 4", "engine must be a mapping"),
    ],
)
def test_setting_in_the_wrong_place_is_refused_with_the_right_one(
    folder: Path, text: str, says: str
) -> None:
    write(folder, text)
    with pytest.raises(ConfigError) as refusal:
        load(environment={})
    assert str(refusal.value) == f"penstock.yaml line 1: {says}"


def test_every_search_provider_that_can_be_asked_may_be_named(folder: Path) -> None:
    names = ("openalex", "searxng", "documents", "browser.ddg")
    engine = "{url: 'https://a.example/?q={query}', result: a, link: a, title: a}"
    write(
        folder,
        f"research: {{search_providers: [{', '.join(names)}]}}\nproviders: {{searxng: {{base_url: 'http://a.example'}}}}\n"
        f"browser: {{engines: {{ddg: {engine}}}}}\n",
    )
    assert load(environment={}).research.search_providers == names


@pytest.mark.parametrize(
    ("lanes", "says"),
    [
        ("x: {parent: y}", "lane 'x': its parent 'y' is not configured"),
        ("x: {parent: llm.plan}", "lane 'x': its parent 'llm.plan' has a parent itself"),
        ("x: {requests_per_interval: 5}", "lane 'x': requests_per_interval and interval_seconds"),
    ],
)
def test_lane_that_makes_no_sense_as_a_whole_is_refused_with_its_line(
    folder: Path, lanes: str, says: str
) -> None:
    write(folder, f"lanes:\n  a: {{max_parallel: 1}}\n  {lanes}\n")
    with pytest.raises(ConfigError, match=f"^{re.escape(f'penstock.yaml line 3: {says}')}"):
        load(environment={})
    write(folder, "lanes: lanes.yaml\n")
    write(folder, f"{lanes}\n", "lanes.yaml")
    with pytest.raises(ConfigError, match=rf"^lanes\.yaml line 1: {re.escape(says)}"):
        load(environment={})


def test_lane_of_the_file_may_have_a_parent_that_the_program_gives(folder: Path) -> None:
    write(folder, "lanes: {x: {parent: y}}")
    assert load(environment={}, lanes={"y": {"max_parallel": 1}}).lanes == {"x": {"parent": "y"}}


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("PENSTOCK_MAXWORKERS", "PENSTOCK_MAX_WORKERS"),
        ("PENSTOCK_QUEU", "PENSTOCK_QUEUE"),
        ("PENSTOCK_CONFG", "PENSTOCK_CONFIG"),
        ("PENSTOCK_LLM_BASEURL", "PENSTOCK_LLM_BASE_URL"),
    ],
)
def test_variable_that_is_nearly_a_setting_is_refused(variable: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"^environment {variable}: .* did you mean {meant}"):
        load(environment={variable: "3"})


def test_variables_of_others_are_left_alone() -> None:
    """Of Kubernetes for services called penstock, penstock-queue and penstock-server; keys that
    the config names; those of the tests."""
    service = "PORT PORT_8321_TCP PORT_8321_TCP_ADDR PORT_8321_TCP_PROTO SERVICE_HOST SERVICE_PORT"
    names = [
        f"{prefix}_{name}"
        for prefix in ("PENSTOCK", "PENSTOCK_QUEUE", "PENSTOCK_STORE", "PENSTOCK_SERVER")
        for name in service.split()
    ]
    own = "API_KEY LLM_KEY OPENALEX_KEY TOKEN CHAOS RESUME EXPLORE NO_INOTIFY SCREENSHOTS"
    names += [f"PENSTOCK_{name}" for name in own.split()]
    assert load(environment=dict.fromkeys(names, "tcp://10.0.0.1:80")) == Config()


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
    assert rows["engine.max_workers"] == (3, "argument")
    assert rows["engine.durable"] == (True, "default")
    for section in PLAIN_SECTIONS:
        names = keys(type(getattr(config, section)))
        assert [f"{section}.{name}" for name in names] == [
            name for name in rows if name.startswith(f"{section}.")
        ]
    assert "s3cret" not in str(config.rows())


def test_lists_are_lists_in_files_and_may_be_texts_with_commas_elsewhere(folder: Path) -> None:
    write(folder, "outbound:\n  fetch_allow: ['a.example:80', '[::1]:81']\n")
    config = load(environment={})
    assert config.outbound.fetch_allow == ("a.example:80", "[::1]:81")
    assert config.sources["outbound.fetch_allow"] == "penstock.yaml line 2"
    environment = {"PENSTOCK_FETCH_ALLOW": "b:1, c:2"}
    assert load(environment=environment).outbound.fetch_allow == ("b:1", "c:2")
    for given in ("d:1,e:2", ["d:1", "e:2"], ("d:1", "e:2")):
        loaded = load({"fetch_allow": given}, environment={})
        assert loaded.outbound.fetch_allow == ("d:1", "e:2")
        assert loaded.engine.outbound == loaded.outbound


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("outbound: {deny: [a]}", "outbound has no key 'deny'; there are: fetch_allow, contact"),
        (
            "outbound: {fetch_allow: [80]}",
            "fetch_allow must be a list of texts, such as [intranet.example:8080], not [80]",
        ),
        ("outbound: {fetch_allow: 'a:1'}", "fetch_allow must be a list of texts, such as"),
        ("outbound: [a]", "outbound must be a mapping"),
    ],
)
def test_list_that_is_wrong_is_refused(folder: Path, text: str, says: str) -> None:
    (folder / "penstock.yaml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"penstock.yaml line 1: {says}")):
        load(environment={})


@pytest.mark.parametrize("weight", ["0", "-1", "many", "true", "1e7"])
def test_weight_that_is_none_is_refused_with_its_line(folder: Path, weight: str) -> None:
    write(folder, f"tenant_weights:\n  a: 2\n  b: {weight}\n")
    with pytest.raises(ConfigError, match=r"^penstock\.yaml line 3: .*\bb must be"):
        load(environment={})


def test_rows_tell_what_is_said_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "penstock.yaml"
    file.write_text("server:\n  port: 80\n  hosts: [a.example, b.example]\n")
    rows = {name: (value, source) for name, value, source in load({}, file=file).rows()}
    assert rows["server.port"] == (80, f"{file} line 2")
    assert rows["server.hosts"] == (("a.example", "b.example"), f"{file} line 3")
    assert rows["server.host"] == ("127.0.0.1", "default")
