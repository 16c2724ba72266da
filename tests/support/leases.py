"""A lease as a claim gives it, for tests of what is done with one."""

from __future__ import annotations

from typing import Any

from penstock.ports.queue import Lease


def lease(seq: int = 1, **given: Any) -> Lease:
    values: dict[str, Any] = {
        **dict.fromkeys(("key", "log", "parent_id", "deadline", "timeout", "max_retries")),
        "id": f"job{seq}",
        "kind": "work",
        "tenant": "default",
        "payload": "{}",
        "lane": "",
        "priority": 50,
        "enqueued_at": 0.0,
        "run_at": 0.0,
        "history": "[]",
        "attempts": 1,
        "crashes": 0,
        "releases": 0,
        "token": 1,
    }
    return Lease(seq, **{**values, **given})
