"""Tests of every ending, for a run of their own. The file's name keeps them out of every other."""

import os
import signal
import time

import pytest

from tests.support.run_folder import run_folder

LAST = run_folder() / "last-test"


@pytest.mark.alone
def test_comes_last() -> None:
    LAST.touch()
    print("said alone")
    raise AssertionError("on purpose")


@pytest.mark.parametrize("number", range(4))
def test_passes(number: int) -> None:
    assert number < 4


def test_fails() -> None:
    print("said before it failed")
    raise AssertionError("on purpose")


def test_dies() -> None:
    if os.fork() == 0:  # it holds the pipe of the process that dies, until the last test is run
        signal.alarm(300)
        while not LAST.exists():
            time.sleep(0.1)
        os._exit(0)
    os._exit(3)


def test_is_run_after_a_death() -> None: ...
