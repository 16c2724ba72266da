"""Tests of every ending, for a run of their own. The file's name keeps them out of every other."""

import os
import signal

import pytest


@pytest.mark.alone
def test_comes_last() -> None:
    print("said alone")
    raise AssertionError("on purpose")


@pytest.mark.parametrize("number", range(4))
def test_passes(number: int) -> None:
    assert number < 4


def test_fails() -> None:
    print("said before it failed")
    raise AssertionError("on purpose")


def test_dies() -> None:
    if os.fork() == 0:  # it holds what the dead process held
        signal.alarm(60)
        signal.pause()
    os._exit(3)


def test_is_run_after_a_death() -> None: ...
