"""Records actions of callers, for the audit log.

A record is written before the action, and completed with its outcome afterwards. So an action whose
server died is not missing, and if nothing can be recorded, nothing is done.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fastapi import Request

from penstock.adapters.sql.access import AccessStore
from penstock.errors import PenstockError
from penstock.model.access import Action, ActionOutcome, Caller
from penstock.model.ids import new_id
from penstock.server.problems import Problem, problem_of
from penstock.wire.jobs import ChangedJobs

log = logging.getLogger("penstock.server")

NAMED = 20
"""Maximum job ids in a record; of more it has the number."""
UNKNOWN = "?"
"""Subject of an action on something that does not exist: a name that matches nothing may be
anything."""
NOT_FOUND = 404
_ID = re.compile("[0-9a-f]{32}")


def named(id: str) -> str:
    """Return an id as a subject; anything else is not recorded."""
    return id if _ID.fullmatch(id) else UNKNOWN


class RecordedAction:
    """The details of an action, recorded when it has ended."""

    def __init__(self, detail: dict[str, Any]) -> None:
        self.detail = detail
        self.partial = False
        """Whether part of the request could not be done."""

    def changed(self, jobs: ChangedJobs) -> None:
        refused = len(jobs.refused)
        self.detail |= {"count": jobs.count, "ids": jobs.ids[:NAMED], "refused": refused}
        self.partial = refused > 0


@asynccontextmanager
async def acting(
    request: Request, action: str, subject: str, **detail: Any
) -> AsyncIterator[RecordedAction]:
    """Record an action of the caller, the block, however it ends. `detail` contains no payloads."""
    caller: Caller = request.state.caller
    access: AccessStore = request.app.state.access
    deed = RecordedAction(detail)
    record = Action(
        id=new_id(),
        at=request.app.state.penstock.queue.now(),
        tenant=caller.tenant,
        key_id=caller.key,
        key_name=caller.name,
        action=action,
        subject=subject,
        detail=detail,
        outcome=ActionOutcome.BEGUN,
    )
    await access.record(record)
    try:
        yield deed
    except Exception as error:
        problem = _problem(error)
        told = {"status": problem.status, "code": problem.code} if problem else {"status": 500}
        missing = told["status"] == NOT_FOUND
        await _end(
            access,
            replace(
                record,
                subject=UNKNOWN if missing else subject,
                detail={**deed.detail, **told},
                outcome=ActionOutcome.FAILED,
            ),
        )
        raise
    ending = ActionOutcome.PARTIAL if deed.partial else ActionOutcome.DONE
    await _end(access, replace(record, detail=deed.detail, outcome=ending))


def _problem(error: Exception) -> Problem | None:
    if isinstance(error, Problem):
        return error
    return problem_of(error) if isinstance(error, PenstockError) else None


async def _end(access: AccessStore, record: Action) -> None:
    try:
        await access.record(record)
    except PenstockError as error:
        # It is done, or has failed, and its caller must be told which.
        log.error("%s of %s is recorded as begun: %s", record.action, record.subject, error)
