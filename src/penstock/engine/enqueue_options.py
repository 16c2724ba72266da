"""Options that every way to enqueue a job takes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict

from penstock.model.job import Priority, PriorityName

When = float | datetime
"""A time: seconds since 1970, or a datetime with a time zone."""


class EnqueueOptions(TypedDict, total=False):
    """Options of `enqueue` and `enqueue_many`, of an app and of a running job."""

    priority: PriorityName | Priority
    """`medium` unless given; of a child that of its parent."""
    delay: float | None
    """Not before so many seconds have passed."""
    run_at: When | None
    """Not before."""
    deadline: When | None
    """Not after."""
    timeout: float | None
    """How long one run may take, in seconds; that of the kind unless given."""
    max_retries: int | None
    """That of the kind unless given."""
    tenant: str
    """`default` unless given; of a child that of its parent."""
    log: str | None
    """The log it reports to; of a child that of its parent unless given."""
    replace: Literal["finished"] | None
    """A key whose job failed or was cancelled starts a new job."""
    conn: Any
    """On PostgreSQL: an asyncpg connection to the queue's database with a transaction open. The job
    is stored if that is committed, and gone if it is not."""
