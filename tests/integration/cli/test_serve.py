"""`penstock serve` that cannot: it says why, and what to do."""

import socket
import subprocess
import sys

import pytest

from tests.support.cli import Cli
from tests.support.waiting import PATIENCE

WITHOUT = (
    "import sys; sys.modules[{!r}] = None; from penstock.cli import main; sys.exit(main(['serve']))"
)


@pytest.mark.parametrize("module", ["fastapi", "uvicorn", "prometheus_client"])
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
    assert ended.stderr == "error: the server needs: pip install 'penstock[server]'\n"


def test_a_port_in_use_is_said_and_how_to_name_another(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = cli("serve", "--port", str(port), code=2).err
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said
    assert "--port" in said


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("prot: 1", "line 2: server has no key 'prot'; did you mean port?"),
        ("port: high", "line 2: server: port must be a whole number"),
        ("hosts: a.example", "line 2: server: hosts must be a list of texts"),
        ("wait_seconds: 0", "server: wait_seconds must be over 0, not 0"),
    ],
)
def test_what_is_wrong_in_the_section_is_said_with_its_line(
    section: str, said: str, cli: Cli
) -> None:
    (cli.folder / "penstock.yaml").write_text(f"server:\n  {section}\n")
    assert said in cli("serve", code=2).err
