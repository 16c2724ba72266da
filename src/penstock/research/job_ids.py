"""Names, payloads and ids of the jobs of a research task.

A search is one job, which queries providers and reads pages by others. Its id is derived from the
search and its run, so it can be looked up without being recorded anywhere, and enqueueing is
idempotent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from penstock.documents.jobs import Enqueue
from penstock.errors import LogStopped, TaskStopped
from penstock.model.ids import child_id
from penstock.model.job import Job
from penstock.model.research import Search, SearchRef
from penstock.text.normalize import normalized

SEARCH, FIND, PAGE = "research.search", "research.find", "research.page"
SEARCH_LANE = "search"


def new_task_id() -> str:
    """Create an id that sorts by time and cannot be guessed."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


def log_of(task: str) -> str:
    """The log of a task."""
    return f"research:{task}"


def job_id(search: Search) -> str:
    return child_id(f"{'/'.join(search.ref)}@{search.run}", SEARCH, "", 1)


def payload_of(ref: SearchRef, run: int) -> dict[str, Any]:
    return {"task": ref.task, "search": ref.id, "run": run}


def query_key(query: str, providers: Sequence[str]) -> str:
    """Key that is equal for the same query at the same providers."""
    words = normalized("NFKC", query).casefold().split()
    return f"{' '.join(words)}\n{','.join(sorted(providers))}"


async def start(enqueue: Enqueue, search: Search) -> Job:
    """Enqueue the job of a search; idempotent. Raises TaskStopped if nothing was enqueued."""
    try:
        return await enqueue(
            SEARCH,
            payload_of(search.ref, search.run),
            job_id=job_id(search),
            tenant=search.ref.tenant,
            log=log_of(search.ref.task),
            priority=search.priority,
        )
    except LogStopped:
        raise TaskStopped(search.ref.task) from None
