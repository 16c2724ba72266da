"""The package as it is installed from its wheel: whole, without the repository, with and without
extras."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from penstock import __version__
from tests.docs.commands import follow

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
HEAVY = {"all", "browser", "names"}
"""Extras that are large: Playwright, Presidio with spaCy, and the one that has both."""
LIGHT_START = {"annotated_doc", "click", "penstock", "shellingham", "sitecustomize", "typer"}
"""All that `penstock --help` may load besides the standard library."""
SLOW_START = {"asyncio", "sqlite3", "ssl"}
"""Of the standard library, what it need not load either."""

pytestmark = pytest.mark.timeout(300)


def run(*command: str | Path, folder: Path, code: int = 0) -> str:
    """What a command says, on both streams."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_", "PYTHON"))}
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment | {"PYTHONWARNINGS": "error"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == code, f"{command}: {ended.returncode}\n{ended.stdout}"
    assert "Traceback" not in ended.stdout, ended.stdout
    return ended.stdout


def tracked(*where: str) -> list[str]:
    """The files that belong to the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout, to know which files belong to the package")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *where],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a clean copy: first the source distribution, and the wheel from that."""
    copy, dist = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    run(UV, "build", "--quiet", "--out-dir", dist, folder=copy)
    [built] = dist.glob("*.whl")
    assert list(dist.glob("*.tar.gz"))
    return built


def install(wheel: Path, folder: Path, extras: set[str]) -> Path:
    """A new environment with the wheel in it; the folder of its programs."""
    run(UV, "venv", "--quiet", "--python", sys.executable, folder / "venv", folder=folder)
    programs = folder / "venv" / "bin"
    wanted = f"penstock[{','.join(sorted(extras))}] @ {wheel.as_uri()}"
    pins = ROOT / "requirements" / "dev.txt"
    options = ("--quiet", "--python", programs / "python", "-c", pins)
    run(UV, "pip", "install", *options, wanted, folder=folder)
    return programs


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment without extras."""
    return install(wheel, tmp_path_factory.mktemp("bare"), set())


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with all extras that are not heavy."""
    with zipfile.ZipFile(wheel) as files:
        [metadata] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        extras = re.findall(r"^Provides-Extra: (\S+)$", files.read(metadata).decode(), re.M)
    assert set(extras) > HEAVY
    return install(wheel, tmp_path_factory.mktemp("full"), set(extras) - HEAVY)


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        packed = {name for name in files.namelist() if not name.endswith("/")}
    own = {name for name in packed if ".dist-info/" not in name}
    assert own == {name.removeprefix("src/") for name in tracked("src")}
    assert {"penstock/py.typed", "penstock/adapters/redis/lua/enqueue.lua"} <= own
    assert {"pytest_penstock/__init__.py", "pytest_penstock/py.typed"} <= own
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in packed)


def test_without_extras_the_quickstart_runs_as_written(bare: Path, tmp_path: Path) -> None:
    assert run(bare / "penstock", "--version", folder=tmp_path) == f"penstock {__version__}\n"
    follow((ROOT / "docs" / "quickstart.md").read_text(), tmp_path, bare)


def test_types_of_the_installed_package_are_found(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from penstock import Job, Penstock\n\n\n"
        "async def enqueue(app: Penstock) -> Job:\n"
        '    job = await app.enqueue("mail")\n'
        "    reveal_type(job)\n"
        "    return job\n"
    )
    program = (Path(sys.executable).with_name("mypy"), "--python-executable", bare / "python")
    mypy = (*program, "--strict", "--cache-dir", tmp_path / "cache")
    said = run(*mypy, "app.py", folder=tmp_path)
    assert "penstock.model.job.Job" in said
    (tmp_path / "app.py").write_text("from penstock import Penstok\n")
    said = run(*mypy, "app.py", folder=tmp_path, code=1)
    assert 'has no attribute "Penstok"' in said


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("server", "serve"),
        ("mcp", "mcp"),
        ("grpc", "librarian"),
        ("redis", "status --queue redis://localhost/0"),
        ("postgres", "status --queue postgresql://localhost/jobs"),
        ("postgres", "search sluice --config store.yaml"),
        ("ingest", "ingest page.md"),
        ("s3", "ingest page.md --config blobs.yaml"),
        ("cron", "worker nightly:app"),
    ],
)
def test_a_command_names_the_extra_it_needs(
    extra: str, command: str, bare: Path, tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_text("# A page\n")
    (tmp_path / "store.yaml").write_text("store: postgresql://localhost/documents\n")
    (tmp_path / "blobs.yaml").write_text("blobs: s3://bucket/prefix\n")
    (tmp_path / "nightly.py").write_text(
        "from penstock import Penstock\n\napp = Penstock()\n\n\n"
        '@app.job("tidy", cron="0 3 * * *")\nasync def tidy(ctx): ...\n'
    )
    said = run(bare / "penstock", *command.split(), folder=tmp_path, code=2)
    assert f"pip install 'penstock[{extra}]'" in said


def test_with_extras_every_module_can_be_imported(full: Path, tmp_path: Path) -> None:
    (tmp_path / "all.py").write_text(
        "import importlib, pkgutil, penstock\n"
        "names = [m.name for m in pkgutil.walk_packages(penstock.__path__, 'penstock.')]\n"
        "for name in names:\n"
        "    # Of other frameworks, which are no extras: who uses them has them.\n"
        "    if not name.endswith('__main__') and '.contrib.' not in name:\n"
        "        importlib.import_module(name)\n"
        "print(len(names))\n"
    )
    said = run(full / "python", "-W", "default", "all.py", folder=tmp_path)
    assert int(said.split()[-1]) > 300


def test_help_loads_nothing_heavy(full: Path, tmp_path: Path) -> None:
    """With everything installed, so that nothing is spared only because it is missing."""
    program = (
        "import sys; from penstock.cli import main; code = main(['--help']);"
        "print('loaded', *{name.partition('.')[0] for name in sys.modules}); sys.exit(code)"
    )
    said = run(full / "python", "-c", program, folder=tmp_path)
    assert said.startswith("Usage: penstock")
    loaded = set(said.splitlines()[-1].split()[1:])
    others = {name for name in loaded - sys.stdlib_module_names if name[0] != "_"}
    assert {"penstock", "typer"} <= others <= LIGHT_START
    assert not loaded & SLOW_START
