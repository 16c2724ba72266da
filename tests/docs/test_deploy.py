"""The files in deploy/ fit together, and what they run is there. No container is started."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from dockerfile_parse import DockerfileParser

from penstock.adapters.postgres import address as postgres_address
from penstock.adapters.redis import address as redis_address
from penstock.cli import cli as commands
from penstock.config import Config, load
from penstock.config.setting_names import PLAIN
from penstock.doctor.context import DiskLimits
from penstock.model.server import ServerConfig as Server
from tests.docs.run_blocks import blocks
from tests.support.cli import Cli
from tests.support.database_servers import RedisServer
from tests.support.postgres import new_url
from tests.support.serve_process import Served

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = ("penstock.service", "penstock-worker@.service")
CONFIG_FILE = "/etc/penstock/penstock.yaml"
STATE = "/var/lib/penstock"
ENVIRONMENT = {"REDIS_PASSWORD": "abc", "POSTGRES_PASSWORD": "def"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def ours(compose: dict[str, Any]) -> dict[str, Any]:
    """The services that run Penstock."""
    return {name: one for name, one in compose["services"].items() if one["image"] == "penstock"}


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    copy = tmp_path_factory.mktemp("image") / "Dockerfile"  # the parser opens it for writing
    shutil.copy(DEPLOY / "Dockerfile", copy)
    structure: list[dict[str, Any]] = DockerfileParser(str(copy)).structure
    return structure


def values(dockerfile: list[dict[str, Any]], instruction: str) -> list[str]:
    return [one["value"] for one in dockerfile if one["instruction"] == instruction]


def settings(**environment: str) -> Config:
    return load({}, file=DEPLOY / "penstock.yaml", environment=environment)


def unit(name: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    text = re.sub(r"^Environment=", "Environment.1=", (DEPLOY / name).read_text(), flags=re.M)
    parser.read_string(text)
    return parser


def seconds(text: str) -> float:
    number = re.fullmatch(r"(\d+)s?", text)
    assert number, text
    return float(number[1])


def must_parse(words: list[str]) -> None:
    """The command line takes these words: the command and its options are there."""
    command: Any = typer.main.get_command(commands)
    rest = list(words)
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands, name
        command = command.commands[name]
    command.make_context(command.name, rest)


def told_commands(compose: dict[str, Any]) -> Iterator[list[str]]:
    for name, service in compose["services"].items():
        if service["image"] == "penstock":
            yield service["command"]
        test = service["healthcheck"]["test"]
        assert test[0] == "CMD", name
        if test[1] == "penstock":
            yield test[2:]
    for name in UNITS:
        program, *words = unit(name)["Service"]["ExecStart"].split()
        assert program == "/opt/penstock/bin/penstock"
        yield words
    for _, text, _ in blocks((DEPLOY / "README.md").read_text()):
        for line in text.splitlines():
            run = re.match(r"docker compose run --rm (\w+) ([^#]+)", line)
            if run:
                assert run[1] in compose["services"], line
                yield run[2].split()


def test_every_command_line_is_one_of_penstock(
    compose: dict[str, Any], dockerfile: list[dict[str, Any]]
) -> None:
    assert values(dockerfile, "ENTRYPOINT") == ['["penstock"]']
    (default,) = values(dockerfile, "CMD")
    told = [json.loads(default), *told_commands(compose)]
    assert {words[0] for words in told} == {"serve", "worker", "status", "keys", "doctor"}
    for words in told:
        must_parse(words)


def test_a_command_line_that_is_none_would_be_noticed() -> None:
    for wrong in (["serve", "--no-wrokers"], ["worker", "--config"]):
        with pytest.raises(typer.TyperException):
            must_parse(wrong)


def test_settings_load_and_urls_with_passwords_are_understood(ours: dict[str, Any]) -> None:
    for service in ours.values():
        given = {
            name: re.sub(r"\$\{(\w+)[^}]*\}", lambda found: ENVIRONMENT[found[1]], value)
            for name, value in service["environment"].items()
        }
        config = settings(**given)
        assert redis_address.parse(config.queue).shown == "redis://redis:6379/0"
        assert "postgres:5432/penstock" in postgres_address.parse(config.store).shown
        assert config.engine.grace_seconds == 25.0


def test_every_secret_of_compose_is_in_the_example_and_nowhere_else() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    wanted = set(re.findall(r"\$\{(\w+)", text))
    example = (DEPLOY / ".env.example").read_text()
    named = set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    assert wanted == named == set(ENVIRONMENT)
    assert not re.search(r"PASSWORD: +[^$\s]", text), "no password stands in the file itself"
    assert "://" not in yaml.dump(yaml.safe_load((DEPLOY / "penstock.yaml").read_text()))


def test_ports_agree(ours: dict[str, Any], dockerfile: list[dict[str, Any]]) -> None:
    port = settings().server.port
    serve = ours["serve"]
    assert serve["ports"] == [f"127.0.0.1:{port}:{port}"], "others reach it by a proxy"
    assert f"http://localhost:{port}/readyz" in serve["healthcheck"]["test"][-1]
    assert values(dockerfile, "EXPOSE") == [str(port)]
    assert "localhost" in settings().server.hosts, "the health check names it so"


def test_paths_agree(ours: dict[str, Any], dockerfile: list[dict[str, Any]]) -> None:
    assert Path(settings().blobs).is_relative_to(STATE)
    for service in ours.values():
        assert f"state:{STATE}" in service["volumes"], "server and workers share the originals"
        assert f"./penstock.yaml:{CONFIG_FILE}:ro" in service["volumes"]
    assert values(dockerfile, "VOLUME") == values(dockerfile, "WORKDIR")[-1:] == [STATE]
    assert any(f"PENSTOCK_CONFIG={CONFIG_FILE}" in one for one in values(dockerfile, "ENV"))
    assert f"deploy/penstock.yaml {CONFIG_FILE}" in values(dockerfile, "COPY")
    for name in UNITS:
        service = unit(name)["Service"]
        assert service["ExecStart"].endswith(f"--config {CONFIG_FILE}")
        assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}" == STATE
        assert service["Environment.1"] == f"XDG_RUNTIME_DIR=/run/{service['RuntimeDirectory']}"
        assert (service["UMask"], service["StateDirectoryMode"]) == ("0077", "0700")
        assert (service["ProtectSystem"], service["PrivateTmp"]) == ("strict", "yes"), (
            "without a /tmp of its own there would be none to write to"
        )


def test_stopping_is_given_longer_than_penstock_takes(ours: dict[str, Any]) -> None:
    config = settings()
    longest = max(config.engine.grace_seconds, config.server.shutdown_seconds)
    given = [seconds(service["stop_grace_period"]) for service in ours.values()]
    given += [seconds(unit(name)["Service"]["TimeoutStopSec"]) for name in UNITS]
    assert min(given) >= longest + 10


def test_every_service_is_checked_restarted_and_waits_for_what_it_needs(
    compose: dict[str, Any],
) -> None:
    services = compose["services"]
    for service in services.values():
        assert service["healthcheck"]["interval"]
        assert service["restart"] == "unless-stopped"
        for needed, how in service.get("depends_on", {}).items():
            assert "healthcheck" in services[needed]
            assert how == {"condition": "service_healthy"}
        for volume in service["volumes"]:
            name = volume.split(":")[0]
            assert name.startswith("./") or name in compose["volumes"]
        assert not service["image"].endswith("latest")


def test_the_image_is_built_of_files_that_are_there_and_runs_without_rights(
    dockerfile: list[dict[str, Any]],
) -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    let_in = [line[1:] for line in ignored if line.startswith("!")]
    for copy in values(dockerfile, "COPY"):
        *sources, _ = copy.split()
        for source in sources:
            if not copy.startswith("--from="):
                assert (ROOT / source).exists(), source
                assert any(fnmatch(source, pattern) for pattern in let_in), source
    assert len(values(dockerfile, "FROM")) == 2
    last = [one["instruction"] for one in dockerfile]
    assert values(dockerfile, "USER") == ["penstock"]
    assert last.index("USER") > max(at for at, name in enumerate(last) if name == "FROM")


def test_the_image_has_extras_that_exist_and_the_tools_of_the_makefile(
    dockerfile: list[dict[str, Any]],
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extras,) = [one for one in values(dockerfile, "ARG") if one.startswith("EXTRAS=")]
    wanted = set(extras.removeprefix("EXTRAS=").split(","))
    assert wanted <= set(project["optional-dependencies"])
    assert {"server", "ingest", "postgres", "redis"} <= wanted
    version = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert version
    assert any(f"uv=={version[1]}" in run for run in values(dockerfile, "RUN"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    """With a program and a user that are here, it has nothing to say."""
    for name in UNITS:
        text = (DEPLOY / name).read_text().replace("/opt/penstock/bin/penstock", sys.executable)
        text = text.replace("User=penstock", "User=root")
        (tmp_path / name.replace("@", "@1")).write_text(text)
    paths = [str(path) for path in tmp_path.iterdir()]
    verify = ["systemd-analyze", "verify", *paths]
    checked = subprocess.run(verify, capture_output=True, text=True, timeout=250)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.fixture(scope="module")
def valkey(compose: dict[str, Any]) -> Iterator[RedisServer]:
    """A server with the options that compose.yaml gives it."""
    name, *words = compose["services"]["redis"]["command"]
    assert name == "valkey-server"
    options = {key.removeprefix("--"): value for key, value in zip(*[iter(words)] * 2, strict=True)}
    assert options.pop("requirepass").startswith("${REDIS_PASSWORD")
    server = RedisServer("valkey", durable=True, **options).start()
    yield server
    server.remove()


def test_what_compose_starts_serves_works_and_stops(tmp_path: Path, valkey: RedisServer) -> None:
    """The same settings, command lines and databases, without containers."""
    cli = Cli(tmp_path)
    del cli.environment["PENSTOCK_DURABLE"]
    cli.environment |= {
        "PENSTOCK_CONFIG": str(DEPLOY / "penstock.yaml"),
        "PENSTOCK_QUEUE": valkey.url,
        "PENSTOCK_STORE": new_url(),
        "PENSTOCK_BLOBS": str(tmp_path / "blobs"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    os.mkdir(tmp_path / "blobs")
    try:
        refused = cli("serve", "--no-workers", "--port", "0", code=2)
        assert "penstock keys create" in refused.err
        cli("keys", "create", "first")
        served = Served(cli.start("serve", "--no-workers", "--port", "0", "--json"))
        worker = cli.start("worker")
        worker.said("penstock worker")
        asked = cli.start("doctor", "--json")
        said = asked.end().json["findings"]
        broken = {one["part"] for one in said if one["status"] == "broken"}
        # The tests' own PostgreSQL need not be durable, and the port may be another test's.
        assert broken <= {"store durability", "server"}, said
        assert served.stop().code == 0
        worker.send(signal.SIGTERM)
        assert worker.end().code == 0
    finally:
        cli.close()


def test_the_page_names_metrics_settings_and_thresholds_that_exist() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    metrics = (ROOT / "docs" / "reference-metrics.md").read_text()
    for name in re.findall(r"penstock_\w+", page):
        assert f"`{name}`" in metrics, name
    known = {*PLAIN} | {field.name for field in fields(Server)}
    named = set(re.findall(r"`(\w+_\w+)`", page)) - {"max_connections"}
    assert named <= known, named - known
    limits = DiskLimits()
    assert f"below {limits.warning // 10**9} GB free" in page
    assert f"below {limits.broken // 10**6} MB" in page
