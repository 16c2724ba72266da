"""Settlements and progress as sent to Redis; `lua/common/settle.lua` fences and stores them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.adapters.redis.lanes import report_ask
from penstock.adapters.sql.settlement_rows import progress_data, record_of, settled_data
from penstock.ports.queue import Outcome, Progress, Settlement
from penstock.text.normalize import storable

FIRST_BLOB = 2
"""Where the results begin among a script's arguments."""


def settlement_asks(
    settlements: Sequence[Settlement], member: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """What to ask for each settlement, and the results that go beside it as they are."""
    asks: list[dict[str, Any]] = []
    results: list[str] = []
    for settlement in settlements:
        ask = _ask(settlement, member)
        if settlement.outcome is Outcome.COMPLETED and settlement.result not in (None, "null"):
            ask["result"] = FIRST_BLOB + len(results)
            results.append(settlement.result or "")
        asks.append(ask)
    return asks, results


def _ask(s: Settlement, member: str) -> dict[str, Any]:
    lease = s.lease
    ask: dict[str, Any] = {
        "seq": str(lease.seq),
        "token": lease.token,
        "id": lease.id,
        "outcome": s.outcome.value,
        "kind": lease.kind,
        "tenant": lease.tenant,
    }
    match s.outcome:
        case Outcome.COMPLETED:
            # As text: it is only stored, and Lua is slow to turn numbers into text.
            ask |= {"started_at": repr(s.started_at), "finished_at": repr(s.finished_at)}
        case Outcome.RETRY | Outcome.FAILED:
            ask |= _ended_badly(s, member)
        case Outcome.SUSPENDED:
            ask["started_at"] = s.started_at
            if s.signal is not None:
                ask["signal"] = s.signal
        case Outcome.RELEASED:
            ask["finished_at"] = s.finished_at
            ask["message"] = storable(s.error["message"]) if s.error else ""
    if s.outcome in (Outcome.RELEASED, Outcome.HANDED_BACK) and s.started_at:
        ask["record"] = json.dumps(record_of(s, member))
    if s.run_at:
        ask["run_at"] = s.run_at
    if lease.lane:
        ask["lane"] = lease.lane
    if s.report is not None:
        ask["report"] = report_ask(s.report)
    if s.waits_lane is not None:
        ask["waits_lane"] = s.waits_lane
    if lease.log is not None:
        ask["log"] = lease.log
        ask["data"] = json.dumps(settled_data(s, s.outcome.value))
    return ask


def _ended_badly(s: Settlement, member: str) -> dict[str, Any]:
    return {
        "started_at": s.started_at,
        "finished_at": s.finished_at,
        "error": json.dumps(s.error),
        "error_type": s.error["type"] if s.error else "",
        "record": json.dumps(record_of(s, member)),
        "run_at": 0.0,
    }


def progress_asks(notes: Sequence[Progress]) -> list[dict[str, Any]]:
    return [_progress_ask(note) for note in notes]


def _progress_ask(note: Progress) -> dict[str, Any]:
    ask = {"seq": note.lease.seq, "token": note.lease.token, "id": note.lease.id}
    if note.fraction is not None:
        ask["fraction"] = note.fraction
        ask |= {"message": storable(note.message), "data": json.dumps(progress_data(note))}
    return ask | ({"lines": note.lines} if note.lines else {})
