"""Every file in examples/ runs by itself, keeps the promises it asserts, and warns of nothing."""

import os
import re
from pathlib import Path

import pytest

from tests.support.forks import run

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(file for file in EXAMPLES.glob("*.py") if file.stem != "demo_view")
DEAD_LETTER = re.compile(r"job [0-9a-f]{32} \(\w+\) failed permanently: \w+.*")
BUSY = re.compile(r"job \w+ \(\S+\) (has blocked|released) the event loop (for|after) .*")
"""Said of any job when the machine stands still."""
BUDGET = re.compile(r"budget \S+: .* spent.*")


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of Penstock, and with warnings as errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return kept | {"PYTHONWARNINGS": "error"}


def test_there_are_examples() -> None:
    assert {"quickstart", "demo", "by_hand", "lanes", "outage"} <= {file.stem for file in FILES}


@pytest.mark.parametrize(
    "file",
    [
        # Others, 100 a second, go on throughout an outage of six.
        pytest.param(file, id=file.stem, marks=[pytest.mark.alone] * (file.stem == "outage"))
        for file in FILES
    ],
)
def test_example_runs(file: Path, tmp_path: Path) -> None:
    environment = clean_environment()
    ended = run(str(file), folder=tmp_path, environment=environment, timeout=100)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    # Some examples make dead letters, or spend a budget, on purpose, and the log says so.
    lines = ended.stderr.splitlines()
    meant = (DEAD_LETTER, BUSY, BUDGET)
    assert [one for one in lines if not any(say.fullmatch(one) for say in meant)] == []
    assert ended.stdout.strip(), "an example shows what it does"


def test_quickstart_serves_the_command_line(tmp_path: Path) -> None:
    """`examples.quickstart:app` is what the docs start a worker on."""
    environment = clean_environment() | {"PENSTOCK_QUEUE": f"sqlite:///{tmp_path}/jobs.db"}
    outputs = []
    for command in (
        ["enqueue", "resize", '{"url": "dog.jpg", "width": 64}'],
        ["worker", "examples.quickstart:app", "--drain"],
        ["jobs", "list", "--state", "completed", "--json"],
    ):
        ended = run("penstock.cli", command, folder=EXAMPLES.parent, environment=environment)
        assert ended.returncode == 0, ended.stderr
        outputs.append(ended.stdout)
    assert outputs[0].strip() in outputs[2]
