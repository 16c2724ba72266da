"""`pytest --workers N`: collect once, then fork the processes that run the tests.

Collecting takes some ten seconds, and whoever is forked inherits what was collected. Each process
is given a file of tests at a time, and when none is left, half of what another has still to do.
Reports come back here, so that options and reports of pytest are as ever.

Tests marked `alone` come after all others, four at a time, and those of tests/chaos last: nearly
all they do is wait. They are few and long, and so shared out one by one. A process that dies fails
the test it was at, and another takes its place.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest
from _pytest.capture import FDCapture
from _pytest.runner import runtestprotocol

from tests.support import forks

ALONE_AT_ONCE = 4
"""Each takes a sixth of a core on average: together they leave one free for whoever needs it."""
CHAOS = Path(__file__).parents[1] / "chaos"
LOOK_SECONDS = 2.0
"""How long the end of a worker whose pipe somebody else holds open may go unnoticed."""
_PR_SET_PDEATHSIG = 1
_FORKING = get_context("fork")

Numbers = deque[int]
"""Tests, by their places in `session.items`."""


class Plan:
    """What is still to be run, and by whom."""

    def __init__(self, files: Iterable[Iterable[int]]) -> None:
        self._files = deque(map(Numbers, files))
        self._given: dict[int, Numbers] = {}

    def next(self, worker: int) -> int | None:
        """A test for this worker; None when none is left."""
        mine = self._given.setdefault(worker, Numbers())
        if not mine:
            mine += self._files.popleft() if self._files else self._half_of_another()
        return mine.popleft() if mine else None

    def give_back(self, worker: int, numbers: list[int]) -> None:
        """Let the next worker of that number run them."""
        self._given[worker].extendleft(reversed(numbers))

    def _half_of_another(self) -> Numbers:
        """The later half, since its owner is at the earlier one."""
        most = max(self._given.values(), key=len)
        return Numbers(reversed([most.pop() for _ in range((len(most) + 1) // 2)]))


class Worker:
    """A process that runs tests, as the process that collected them sees it.

    It is told its first; `tell_next` has to tell it the test after the one it is at, always: pytest
    asks for that to keep what both use.
    """

    def __init__(self, number: int, session: pytest.Session, plan: Plan) -> None:
        self.number = number
        self._plan = plan
        # Two pipes: where one socket serves both ways, what a process has sent before it dies is
        # lost if it dies without having read all that was sent to it.
        self.connection, reports = _FORKING.Pipe(duplex=False)
        numbers, self._numbers = _FORKING.Pipe(duplex=False)
        arguments = (session, numbers, reports, os.getpid())
        self._process = _FORKING.Process(target=_work, args=arguments)
        self._process.start()
        numbers.close()
        reports.close()
        self._told = Numbers()
        self._told_all = False
        self.tell_next()

    def tell_next(self) -> None:
        if self._told_all:
            return
        number = self._plan.next(self.number)
        if number is None:
            self._told_all = True
        else:
            self._told.append(number)
        with contextlib.suppress(ConnectionError):  # it has died, as the pipe will tell
            self._numbers.send(number)

    def hear(self) -> list[dict[str, Any]] | None:
        """The reports of a test; None if it has ended."""
        if self.dead:
            return None
        try:
            reports: list[dict[str, Any]] = self.connection.recv()
        except (EOFError, ConnectionError):
            return None
        self._told.popleft()
        return reports

    @property
    def dead(self) -> bool:
        """Whether it has ended, even if a process that a test forked still holds its pipe."""
        return self._process.exitcode is not None and not self.connection.poll()

    def end(self) -> tuple[int | None, list[int]]:
        """Wait for its end: its exit code, and what it was told to run and did not."""
        self.connection.close()
        self._numbers.close()
        self._process.join()
        return self._process.exitcode, list(self._told)

    def kill(self) -> None:
        self._process.kill()
        self.end()


class Parallel:
    """The plugin of the process that collects and reports."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._told_of = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None  # for pytest to say
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            terminal.showfspath = False  # the file changes with every dot
        forks.server()  # one for all
        assert threading.active_count() == 1, "a fork would lack the other threads"
        for together, at_once in _parts(session.items, self._at_once):
            self._run(session, Plan(together), min(at_once, sum(map(len, together))))
        assert self._told_of == len(session.items), "a test was lost, or run twice"
        return True

    def _run(self, session: pytest.Session, plan: Plan, at_once: int) -> None:
        workers: dict[Any, Worker] = {}
        try:
            for number in range(at_once):
                worker = Worker(number, session, plan)
                workers[worker.connection] = worker
            for worker in workers.values():  # now, so that nobody has two long ones too soon
                worker.tell_next()
            while workers:
                dead = [one for one, worker in workers.items() if worker.dead]
                for ready in dead or wait(list(workers), LOOK_SECONDS):
                    worker = workers[ready]
                    reports = worker.hear()
                    if reports is not None:
                        self._told_of += 1
                        _report(session, reports)
                        worker.tell_next()
                    else:
                        del workers[ready]
                        code, owed = worker.end()
                        if owed:
                            self._told_of += 1
                            _report_death(session, session.items[owed[0]], code)
                            plan.give_back(worker.number, owed[1:])
                            worker = Worker(worker.number, session, plan)
                            worker.tell_next()
                            workers[worker.connection] = worker
                    if session.shouldfail:
                        raise session.Failed(session.shouldfail)
                    if session.shouldstop:
                        raise session.Interrupted(session.shouldstop)
        finally:
            for worker in workers.values():
                worker.kill()


class Reporting:
    """The plugin of a worker: what pytest would print is sent to where it is printed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        to_data = item.config.hook.pytest_report_to_serializable
        self._connection.send([to_data(config=item.config, report=report) for report in reports])
        return True


def _parts(items: list[pytest.Item], at_once: int) -> Iterator[tuple[list[list[int]], int]]:
    """The tests that may run beside each other: those that one process is given together, and how
    many at a time."""
    alone = [n for n, item in enumerate(items) if item.get_closest_marker("alone")]
    others = sorted(set(range(len(items))).difference(alone))
    files = [list(of_file) for _, of_file in groupby(others, key=lambda n: items[n].path)]
    chaos = [[n] for n in alone if CHAOS in items[n].path.parents]
    rest = [[n] for n in alone if [n] not in chaos]
    for together, most in ((files, at_once), (rest, ALONE_AT_ONCE), (chaos, ALONE_AT_ONCE)):
        if together:
            yield together, min(at_once, most)


def _report(session: pytest.Session, reports: list[dict[str, Any]]) -> None:
    hook = session.config.hook
    for data in reports:
        report = hook.pytest_report_from_serializable(config=session.config, data=data)
        hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown":
            hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


def _report_death(session: pytest.Session, item: pytest.Item, code: int | None) -> None:
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=f"the process that ran {item.nodeid} ended with exit code {code}",
        when="call",
    )
    session.config.hook.pytest_runtest_logreport(report=report)


def _work(session: pytest.Session, numbers: Connection, reports: Connection, parent: int) -> None:
    """In a fork: run what is asked for."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    config = session.config
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    _capture_apart(capture)
    _move_temporary_folder(config)
    forks.draw_anew()
    config.pluginmanager.register(Reporting(reports))
    try:
        number = numbers.recv()
        while number is not None:
            following = numbers.recv()
            item = session.items[number]
            config.hook.pytest_runtest_protocol(
                item=item, nextitem=None if following is None else session.items[following]
            )
            number = following
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)  # its parent was interrupted, too, and says so
    capture.stop_global_capturing()
    atexit._run_exitfuncs()


def _capture_apart(capture: Any) -> None:
    """Into files of this process. Those of the process that collected stay open, because modules
    that were imported then may hold them (as a default argument, for one), but lead here too."""
    before = capture._global_capturing
    capture.suspend_global_capture(in_=True)
    capture._global_capturing = None
    capture.start_global_capturing()
    now = capture._global_capturing
    capture.inherited = before  # else it would be closed
    for inherited, own in ((before.out, now.out), (before.err, now.err)):
        if isinstance(inherited, FDCapture):  # not with --capture=no or --capture=sys
            os.dup2(own.tmpfile.fileno(), inherited.tmpfile.fileno())


def _move_temporary_folder(config: pytest.Config) -> None:
    """Into a folder of this process, in that of the run."""
    shared: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    config.option.basetemp = str(shared.getbasetemp() / f"worker-{os.getpid()}")
    own = pytest.TempPathFactory.from_config(config, _ispytest=True)
    config._tmp_path_factory = own  # type: ignore[attr-defined]
