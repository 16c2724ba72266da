"""Answers as rows: the same columns in every store that speaks SQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from penstock import runtime
from penstock.adapters.sql.task_rows import kept
from penstock.model.answer import (
    Answer,
    AnswerState,
    Citation,
    Evidence,
    Phase,
    Plan,
    Round,
    Sources,
)

COLUMNS = "tenant, id, state, created_at, saves, body, rounds"
WITHOUT_ROUNDS = "tenant, id, state, created_at, saves, body, '[]'"
_OWN = ("tenant", "id", "state", "created_at", "saves")
"""What has a column of its own."""

Row = Sequence[Any]


def answer_values(answer: Answer) -> dict[str, Any]:
    """An answer, by column, in the order of COLUMNS."""
    known: dict[str, Any] = kept(asdict(answer))
    rounds = known.pop("rounds")
    for evidence in (one for turn in rounds for one in turn["evidence"]):
        # In one list, as with chunks: an earlier version knows no other key, and reads two of it.
        if starts := evidence.pop("page_starts", ()):
            evidence["pages"] = [*evidence["pages"], *starts]
    return {
        **{name: known.pop(name) for name in _OWN},
        "body": json.dumps(known, ensure_ascii=False),
        "rounds": json.dumps(rounds, ensure_ascii=False),
    }


def answer_of(row: Row) -> Answer:
    """The answer in a row of COLUMNS."""
    tenant, id_, state, created_at, saves, body, rounds = row
    known: dict[str, Any] = json.loads(body)
    plan, collections = known["plan"], known["collections"]
    return Answer(
        **known
        | {
            "tenant": tenant,
            "id": id_,
            "state": AnswerState(state),
            "created_at": created_at,
            "saves": saves,
            "sources": Sources(known["sources"]),
            "phase": Phase(known["phase"]),
            "collections": None if collections is None else tuple(collections),
            "plan": None if plan is None else Plan(tuple(plan["queries"]), plan["enough"]),
            "citations": tuple(Citation(**one) for one in known["citations"]),
            "unsupported": tuple((start, end) for start, end in known["unsupported"]),
            "missing": tuple(known["missing"]),
            "notes": tuple(known["notes"]),
            "rounds": tuple(_round_of(one) for one in json.loads(rounds)),
        }
    )


async def read_answer(row: Row) -> Answer:
    """As `answer_of`. The evidence can be a megabyte, which the event loop is not to read while
    others wait."""
    return await runtime.in_thread(answer_of, row)


async def saved_answer(values: dict[str, Any]) -> Answer:
    """As it stands once these values are saved."""
    return await read_answer(list({**values, "saves": values["saves"] + 1}.values()))


def _round_of(known: dict[str, Any]) -> Round:
    return Round(
        **known
        | {
            "queries": tuple(known["queries"]),
            "missing": tuple(known["missing"]),
            "next": tuple(known["next"]),
            "evidence": tuple(_evidence_of(one) for one in known["evidence"]),
        }
    )


def _evidence_of(known: dict[str, Any]) -> Evidence:
    pages = known["pages"] or ()
    return Evidence(**known | {"pages": tuple(pages[:2]) or None, "page_starts": tuple(pages[2:])})
