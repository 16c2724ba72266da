"""`ctx.log`: log lines stored with the job, and written to the process's log."""

from __future__ import annotations

import logging
import sys
from typing import Any

from penstock.aio import call_on
from penstock.engine.run import Run
from penstock.engine.settler import Settler
from penstock.errors import describe
from penstock.model.job_log import log_line
from penstock.telemetry.logs import JOB_LOGGER
from penstock.text.error_text import in_words

TICK = 1e-6
"""Seconds between two lines at least, so that no two are the same."""


class JobLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger for one run of a job: `ctx.log("%d pages", n)`, `ctx.log.warning(...)`.

    What is INFO or above is kept with the job, whatever the level of the process's log, which
    gets it, too: the last 64 KiB of a job, 2,000 characters of each line.
    """

    def __init__(self, run: Run, settler: Settler) -> None:
        lease = run.lease
        about = {"job": lease.id, "kind": lease.kind, "attempt": lease.attempts}
        super().__init__(logging.getLogger(JOB_LOGGER), about)
        self._run = run
        self._settler = settler
        self._last = 0.0

    def __call__(self, message: object, *args: object) -> None:
        self.info(message, *args)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if level >= logging.INFO:
            self._last = max(self._run.member.now(), self._last + TICK)
            said = _said(level, msg, args, kwargs.get("exc_info"))
            name = logging.getLevelName(level).lower()
            line = log_line(self._last, self._run.lease.attempts, name, said)
            loop = self._run.task.get_loop()
            call_on(loop, self._settler.note, self._run, None, "", line)
        super().log(level, msg, *args, **kwargs)


def _said(level: int, msg: object, args: tuple[object, ...], exc_info: Any) -> str:
    record = logging.LogRecord("", level, "", 0, msg, args, None)
    try:
        said = record.getMessage()
    except Exception:  # values that do not fit: as with any logger, no reason to fail
        said = f"{msg} {args!r}"
    if exc_info:
        error = exc_info if isinstance(exc_info, BaseException) else sys.exc_info()[1]
        if error is not None:
            said += f": {in_words(describe(error, retryable=True))}"
    return said
