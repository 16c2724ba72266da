"""Finds what jobs ask people, and takes the answers that people give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.api.tenant_view import TenantView
from penstock.errors import ValidationError
from penstock.model.job import Job
from penstock.model.payload import read_json
from penstock.model.question import ACCEPT, DECLINE, PREFIX, JobQuestion, check_answer
from penstock.ports.steps import signal_of


async def open_question(tenant_view: TenantView, job: Job) -> JobQuestion | None:
    """What a job, which is known to be the tenant's, waits to be answered; None for one that
    waits for nothing of the kind."""
    name = signal_of(job)
    if name is None or not name.startswith(PREFIX):
        return None
    rows = [row for row in await tenant_view.steps(job.id) if row.name == name and row.result]
    if not rows:
        return None
    row = max(rows, key=lambda one: one.occurrence)
    asked = read_json(row.result or "null")
    return JobQuestion(f"{name}#{row.occurrence}", asked["message"], asked["schema"])


async def answer_question(
    tenant_view: TenantView, job: Job, question_id: str, content: dict[str, Any] | None
) -> bool:
    """Answer what a job asks, or decline it (None). False if somebody has answered before.
    ValidationError if the job does not ask that, or the answer does not fit."""
    question = await open_question(tenant_view, job)
    if question is None or question.id != question_id:
        raise ValidationError("the job does not ask that, or not any more")
    if content is None:
        told: dict[str, Any] = {"action": DECLINE}
    else:
        check_answer(question.schema, content)
        told = {"action": ACCEPT, "content": content}
    name = question.id.rpartition("#")[0]
    return await tenant_view.signal(job.id, name, told, question.id)


def filled(schema: Mapping[str, Any], fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The content of an answer, from the fields of a form as texts; empty ones are left out."""
    content: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        text = next(iter(fields.get(f"answer.{name}", ())), "").strip()
        kind = field.get("type")
        if kind == "boolean" and text:
            content[name] = text == "true"
        elif text:
            try:
                content[name] = {"integer": int, "number": float}.get(kind, str)(text)
            except ValueError:
                raise ValidationError(f"{name} is to be a number") from None
    return content
