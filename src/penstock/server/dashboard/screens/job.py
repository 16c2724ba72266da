"""One job: timeline, steps, payload, result, actions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.api.questions import answer_question, filled, open_question
from penstock.api.tenant_view import RESERVED
from penstock.errors import JobEnded, SignalLimit, ValidationError
from penstock.model.job import Job, JobState
from penstock.model.redact import hidden_job
from penstock.ports.queue import JobFilter
from penstock.ports.steps import signal_of
from penstock.server.actions import acting, named
from penstock.server.dashboard.filters import in_path
from penstock.server.dashboard.job_actions import DESTROYS, VERBS, act_of, change
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import Flash, confirm, redirect
from penstock.server.dashboard.session import Form, Reading, Writing, read_form
from penstock.server.dashboard.waterfall import waterfall
from penstock.server.dependencies import CallerView
from penstock.text.json_text import value_of

WIDTH = 1000
LEAST = 4
"""Minimum width of a period, on the scale of WIDTH."""


@dataclass(slots=True, frozen=True)
class Period:
    what: str
    """waited, or the outcome of the run: completed, retry, failed, lost, running ..."""
    begun: float
    ended: float
    attempt: int | None = None
    error: dict[str, Any] | None = None
    traceback: str | None = None
    process: str | None = None

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended - self.begun)

    @property
    def waited(self) -> bool:
        return self.what == "waited"


def periods(job: Job, now: float) -> list[Period]:
    """Return the periods from enqueueing to now, or to the end."""
    found: list[Period] = []
    at = job.enqueued_at

    def add(period: Period) -> None:
        nonlocal at
        if period.begun > at:
            found.append(Period("waited", at, period.begun))
        found.append(period)
        at = period.ended

    for record in job.history:
        ended = record["finished_at"]
        begun = record.get("started_at") or ended
        add(
            Period(
                record["outcome"],
                begun,
                ended,
                record.get("attempt"),
                record.get("error"),
                record.get("traceback"),
                record.get("process"),
            )
        )
    begun = job.started_at
    if job.state is JobState.RUNNING and begun is not None and begun >= at:
        add(Period("running", begun, now, job.attempts))
    elif job.state is JobState.COMPLETED and begun is not None:
        add(Period("completed", begun, job.finished_at or begun, job.attempts))
    elif not job.state.finished:
        found.append(Period("waited", at, now))
    elif job.state is JobState.CANCELLED and job.finished_at is not None:
        add(Period("cancelled", job.finished_at, job.finished_at))
    return found


def bars(found: list[Period]) -> list[tuple[str, float, float]]:
    """Return the bars of the chart: kind, start and width, out of WIDTH."""
    total = sum(period.seconds for period in found)
    if not total:
        return []
    drawn, at = [], 0.0
    for period in found:
        wide = WIDTH * period.seconds / total
        kind = "waited" if period.waited else period.what.replace(" ", "-")
        drawn.append((kind, round(min(at, WIDTH - LEAST), 1), round(max(LEAST, wide), 1)))
        at += wide
    return drawn


routes = router()


@routes.get("/jobs/{job_id:name}")
@routes.get("/live/jobs/{job_id:name}")
async def job(request: Request, visit: Reading, job_id: str) -> Response:
    look = partial(_seen, visit, job_id)
    return await screen(request, "job.html", lambda seen: f"Job {seen['job'].kind}", look)


async def _seen(visit: CallerView, job_id: str) -> dict[str, Any]:
    app = visit.app
    names, now = app.config.logging.hidden_names, app.queue.now()
    # Beside the event loop, as payloads may be large; two hundred results are megabytes of JSON.
    found = await asyncio.to_thread(hidden_job, await visit.job(job_id), names)
    rows = await visit.steps(job_id)
    steps = await asyncio.to_thread(waterfall, rows, found, names, now) if rows else None
    life = periods(found, now)
    return {
        "job": found,
        "periods": life,
        "bars": bars(life),
        "width": WIDTH,
        "waterfall": steps,
        "signal": signal_of(found),
        "question": await open_question(visit, found),
        "repeatable": not found.kind.startswith(tuple(RESERVED)),
    }


@routes.post("/jobs/{job_id:name}/change")
async def change_job(request: Request, visit: Writing, job_id: str) -> Response:
    form = await read_form(request)
    act, back = act_of(form.one("what")), f"/jobs/{in_path(job_id)}"
    await visit.job(job_id)
    if act in DESTROYS and not form.confirmed:
        return confirm(request, f"{VERBS[act]} this job?", form.fields, back)
    flash = await change(request, visit, act, JobFilter(ids=[job_id]))
    gone = act == "discard" and flash.kind == "good"
    return redirect("/dead-letters" if gone else back, flash)


@routes.post("/jobs/{job_id:name}/rerun")
async def rerun(request: Request, visit: Writing, job_id: str) -> Response:
    form, back = await read_form(request), f"/jobs/{in_path(job_id)}"
    step = _exactly(form, "from_step") or None
    try:
        async with acting(request, "job.rerun", named(job_id)) as deed:
            await request.app.state.depth.check(visit.tenant)
            new = await visit.rerun(job_id, from_step=step)
            deed.detail["new"] = new.id
    except ValidationError as error:
        return redirect(back, Flash("bad", f"Not rerun: {error}."))
    return redirect(f"/jobs/{in_path(new.id)}", Flash("good", "New job enqueued."))


@routes.post("/jobs/{job_id:name}/signal")
async def signal(request: Request, visit: Writing, job_id: str) -> Response:
    """Send the signal that the job waits for. One that it does not wait for any more is refused:
    nobody who looks at the page means the next wait of that name."""
    form = await read_form(request)
    name, text = _exactly(form, "name"), form.one("payload")
    flash = Flash("good", "Signal sent.")
    try:
        async with acting(request, "job.signal", named(job_id)) as deed:
            if signal_of(await visit.job(job_id)) != name:
                raise ValidationError("the job does not wait for it any more")
            deed.detail["name"] = name
            payload = await asyncio.to_thread(value_of, text, "the payload") if text else True
            deed.detail["stored"] = await visit.signal(job_id, name, payload, None)
    except (ValidationError, JobEnded, SignalLimit) as error:
        flash = Flash("bad", f"Signal not sent: {error}.")
    return redirect(f"/jobs/{in_path(job_id)}", flash)


@routes.post("/jobs/{job_id:name}/answer")
async def answer(request: Request, visit: Writing, job_id: str) -> Response:
    """Answer what the job asks, or decline it."""
    form = await read_form(request)
    flash = Flash("good", "Answered.")
    try:
        async with acting(request, "job.answer", named(job_id)) as deed:
            job = await visit.job(job_id)
            question = await open_question(visit, job)
            if question is None:
                raise ValidationError("the job does not ask anything any more")
            content = None if form.one("decline") else filled(question.schema, form.fields)
            told = _exactly(form, "question")
            deed.detail["stored"] = await answer_question(visit, job, told, content)
    except (ValidationError, JobEnded, SignalLimit) as error:
        flash = Flash("bad", f"Not answered: {error}.")
    return redirect(f"/jobs/{in_path(job_id)}", flash)


def _exactly(form: Form, name: str) -> str:
    """A field as it was sent: names of steps and signals may begin and end with spaces."""
    return "".join(form.all(name)[:1])
