"""Answers in a database. Statements: `answers.sql`.

They promise:
- every row belongs to a tenant, and nothing is read or changed without naming it;
- an answer that is over (completed, failed, cancelled) is never changed again: of two who end it,
  one does;
- whoever saves an answer has seen it as it is: of two who change it at the same time, one does.

Methods raise StoreUnavailable while the store cannot be reached.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from penstock import runtime
from penstock.adapters.sql.dialect import Row, Sql, SqlDatabase, StoreDatabase
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

_OWN = ("tenant", "id", "state", "created_at", "saves")
"""What has a column of its own."""


class AnswerStore:
    """Usable while the store it is in is open."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = StoreDatabase(database)

    async def create(self, answer: Answer) -> Answer:
        """Store an answer that is to be worked on; if there is one of this tenant and id, that one
        as it is."""
        values = _values(answer)

        async def create(tx: Sql) -> Row:
            await tx.execute("create_answer", **values)
            return await tx.one("read_answer", **values)

        return await _read(await self._database.write(create))

    async def get(self, tenant: str, answer: str) -> Answer | None:
        rows = await self._database.fetch("read_answer", **kept({"tenant": tenant, "id": answer}))
        return await _read(rows[0]) if rows else None

    async def answers(self, tenant: str, limit: int, before: str | None = None) -> list[Answer]:
        """The newest first, without rounds; `before` is the id of the last one of the page
        before."""
        named = kept({"tenant": tenant, "before": before})
        if before is None:
            rows = await self._database.fetch("newest_answers", **named, limit=limit)
        else:
            last = await self._database.fetch(
                "read_answer", tenant=named["tenant"], id=named["before"]
            )
            if not last:
                return []
            made = last[0]["created_at"]
            rows = await self._database.fetch(
                "older_answers", **named, created_at=made, limit=limit
            )
        return [_answer_of(row) for row in rows]

    async def save(self, answer: Answer) -> Answer | None:
        """Store how far it has come; as it is then, which is what to save next. None: it is over
        already, or somebody else has saved it since it was read, and nothing was changed; or there
        is none."""
        values = _values(answer)
        if not await self._database.write(lambda tx: tx.execute("save_answer", **values)):
            return None
        return await _read(list({**values, "saves": values["saves"] + 1}.values()))

    async def running(
        self, before: float, limit: int, after: tuple[str, str] | None = None
    ) -> list[Answer]:
        """Answers of all tenants that are running and were created before a time, in the order of
        tenant and id, without rounds: what a reconciler looks through. `after` is the tenant and
        id of the last one of the page before."""
        tenant, id_ = kept(after or ("", ""))
        rows = await self._database.fetch(
            "running_answers", before=before, tenant=tenant, id=id_, limit=limit
        )
        return [_answer_of(row) for row in rows]


def _values(answer: Answer) -> dict[str, Any]:
    """An answer, by column, in the order of `answer_columns`."""
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


def _answer_of(row: Row) -> Answer:
    """The answer in a row of `answer_columns`."""
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


async def _read(row: Row) -> Answer:
    """As `_answer_of`. The evidence can be a megabyte, which the event loop is not to read while
    others wait."""
    return await runtime.in_thread(_answer_of, row)


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
