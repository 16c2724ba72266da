"""`penstock librarian`: what it says, and how it ends."""

import os
import socket
import subprocess
import sys

import pytest

from tests.support.cli import Cli, wait_until
from tests.support.waiting import PATIENCE

WITHOUT = (
    "import sys; sys.modules[{!r}] = None; from penstock.cli import main;"
    " sys.exit(main(['librarian']))"
)


@pytest.mark.parametrize("module", ["grpc", "grpc_health.v1"])
def test_without_its_extra_it_says_what_to_install(module: str, cli: Cli) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(module)],
        cwd=cli.folder,
        env=cli.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr == "error: the librarian needs: pip install 'penstock[grpc]'\n"


def test_it_says_where_it_serves_and_ends_on_a_signal(cli: Cli) -> None:
    command = cli.start("librarian", "--port", "0")
    command.said("penstock librarian serves 127.0.0.1:")
    command.process.terminate()
    done = command.end()
    assert done.code == 0
    assert "stopping: waiting for running searches" in done.err
    assert done.err.endswith("stopped\n")
    assert "Traceback" not in done.err


def test_it_is_a_process_of_the_queue_that_runs_no_jobs(cli: Cli) -> None:
    command = cli.start("librarian", "--port", "0", "--json")
    wait_until(lambda: '"started"' in command.out, "it to start")
    (process,) = cli("status", "--json").json["processes"]
    assert (process["pid"], process["kinds"]) == (command.process.pid, [])


def test_a_port_in_use_is_said_and_how_to_name_another(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = cli("librarian", "--port", str(port), code=2).err
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert "--port" in said


def test_elsewhere_than_on_loopback_it_needs_a_token(cli: Cli) -> None:
    said = cli("librarian", "--host", "::", "--port", "0", code=2).err
    assert "needs a token: librarian.token_variable" in said


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("adress: a:1", "line 2: librarian has no key 'adress'; did you mean address?"),
        ("port: high", "line 2: librarian: port must be a whole number"),
        ("address: nowhere", "librarian: address must be host:port, not 'nowhere'"),
        ("address: 'http://a:1'", "librarian: address must be host:port"),
        ("address: 'a:99999'", "librarian: address must be host:port"),
        ("max_searches: 0", "librarian: max_searches must be over 0, not 0"),
        ("tls_key: a.pem", "librarian: tls_certificate and tls_key go together"),
        ("tls_name: a.example", "librarian: tls_name needs tls_authority"),
    ],
)
def test_what_is_wrong_in_the_section_is_said(section: str, said: str, cli: Cli) -> None:
    (cli.folder / "penstock.yaml").write_text(f"librarian:\n  {section}\n")
    assert said in cli("librarian", code=2).err


def test_config_shows_what_is_set_and_never_the_token(cli: Cli) -> None:
    lines = "  address: a.example:8331\n  token_variable: DESK_TOKEN\n"
    (cli.folder / "penstock.yaml").write_text(f"librarian:\n{lines}")
    shown = cli("config", environment={**os.environ, "DESK_TOKEN": "hush"}).out
    assert "librarian.address" in shown
    assert "a.example:8331" in shown
    assert "DESK_TOKEN" in shown
    assert "hush" not in shown
