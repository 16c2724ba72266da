"""`pytest --workers`: every test is run once, and told of as it ended."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.support.run_folder import MARK

ROOT = Path(__file__).parents[2]


def test_every_test_is_run_once_and_reported_whatever_becomes_of_its_process(
    tmp_path: Path,
) -> None:
    report = tmp_path / "report.xml"
    arguments = ["--workers", "2", "-p", "no:cacheprovider", f"--junitxml={report}"]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *arguments, f"--basetemp={tmp_path / 'base'}"),
            "tests/support/small_run.py",
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != MARK},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,  # it waits for ever where the death of a process is not noticed
    )
    said = ended.stdout
    assert ended.returncode == 1, said + ended.stderr
    assert "3 failed, 5 passed" in said, said
    assert "said before it failed" in said
    assert "test_dies ended with exit code 3" in said
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 (our own)
    told = [case.attrib["name"] for case in cases]
    assert sorted(told) == sorted(
        [
            *(f"test_passes[{number}]" for number in range(4)),
            *("test_comes_last", "test_dies", "test_fails", "test_is_run_after_a_death"),
        ]
    )
    assert told[-1] == "test_comes_last", "it is marked alone"
