"""Ask: a question, its answer as it streams in, and its citations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from markupsafe import Markup
from starlette.responses import Response

from penstock.answers.event_text import cited_evidence, in_words
from penstock.answers.phases import MAX_SECONDS
from penstock.answers.sentences import cited
from penstock.answers.service import LEAST_SECONDS, QUESTION_LIMIT
from penstock.api.tenant_view import TenantView
from penstock.model.answer import Answer, AnswerState, Citation
from penstock.server.actions import acting, named
from penstock.server.dashboard.filters import highlighted, in_path
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import Refused, empty, number, router, told, typed
from penstock.server.dashboard.pages import Flash, confirm, paging, redirect
from penstock.server.dashboard.session import Reading, Writing, read_form
from penstock.server.dependencies import Before, CallerView
from penstock.server.problems import Problem

PASSAGE = "passage-"
"""Prefix of the ids of passages on a page; the number follows."""
UNCITED = Markup('<span class="uncited">{}</span>')


class AnswerLog:
    """The events of an answer so far, in words, and its text as it is written."""

    def __init__(self, tenant_view: TenantView, answer_id: str) -> None:
        self._tenant_view = tenant_view
        self._id = answer_id
        self._since = 0
        self.steps: list[tuple[float, str]] = []
        self._written = ""

    async def read_on(self) -> None:
        answers, tenant = self._tenant_view.answers, self._tenant_view.tenant
        while news := await answers.events(self._id, self._since, tenant=tenant):
            for one in news:
                self._since = one.version
                if one.what == "writing":  # whoever wrote before was interrupted
                    self._written = ""
                if one.what == "token":
                    self._written += str(one.data["text"])
                elif words := in_words(one):
                    self.steps.append((one.at, words))

    def text_of(self, answer: Answer) -> Markup:
        """Return its text; what was written so far if it has none yet."""
        if answer.over:
            return with_links(answer.text, answer.citations, answer.unsupported)
        known = {one.number for one in answer.evidence}
        text, citations, _ = cited(self._written, known)
        return with_links(text, citations, ())


def with_links(
    text: str, citations: Sequence[Citation], unsupported: Sequence[tuple[int, int]]
) -> Markup:
    """Link citations to their passages, and mark sentences without one. No citation is inside such
    a sentence."""
    marks = [(one.start, one.end, _link(one.number)) for one in citations]
    marks += [(start, end, UNCITED) for start, end in unsupported]
    return highlighted(text, sorted(marks))


def _link(passage: int) -> Markup:
    return Markup(f'<a class="cite" href="#{PASSAGE}{passage}">{{}}</a>')  # noqa: S704 (a number)


routes = router()

PAGE = 20
FIELDS = ("question", "sources", "collections", "seconds")
LIMITS = {"question": QUESTION_LIMIT, "least": LEAST_SECONDS, "most": MAX_SECONDS}

Prefilled = Annotated[str, Query(max_length=QUESTION_LIMIT)]


@routes.get("/ask")
@routes.get("/live/ask")
async def ask(
    request: Request, visit: Reading, before: Before = None, question: Prefilled = ""
) -> Response:
    return await _form(request, visit, empty(*FIELDS, question=question), None, before)


async def _form(
    request: Request,
    visit: CallerView,
    fields: dict[str, str],
    wrong: Problem | None,
    before: str | None = None,
) -> Response:
    look = partial(_asked, visit, before)
    return await screen(request, "ask.html", "Ask", look, wrong, typed=fields, limits=LIMITS)


async def _asked(visit: CallerView, before: str | None) -> dict[str, Any]:
    tenant = visit.tenant
    found = await visit.answers.answers(tenant=tenant, limit=PAGE + 1, before=before)
    return paging("answers", "/ask", found, PAGE, before)


@routes.post("/ask")
async def put_question(request: Request, visit: Writing) -> Response:
    form = await read_form(request)
    try:
        names = [name.strip() for name in form.one("collections").split(",")]
        await request.app.state.depth.check(visit.tenant)
        answer = await visit.answers.ask(
            form.one("question"),
            sources=form.one("sources", "documents"),
            collections=[name for name in names if name] or None,
            seconds=number(form, "seconds", "Seconds"),
            tenant=visit.tenant,
        )
    except Refused as error:
        return await _form(request, visit, typed(form, *FIELDS), told(error))
    return redirect(f"/ask/{answer.id}")


@routes.get("/ask/{answer_id:name}")
@routes.get("/live/ask/{answer_id:name}")
async def answer(request: Request, visit: Reading, answer_id: str) -> Response:
    look = partial(_seen, visit, answer_id, AnswerLog(visit, answer_id))
    return await screen(request, "answer.html", "Answer", look)


async def _seen(visit: CallerView, answer_id: str, story: AnswerLog) -> dict[str, Any]:
    await story.read_on()  # before the answer: what it cites is stored by then
    found = (await visit.answer(answer_id)).answer
    cited = cited_evidence(found)
    return {
        "answer": found,
        "text": story.text_of(found),
        "steps": story.steps,
        "cited": cited,
        "others": [one for one in found.evidence if one not in cited],
    }


@routes.post("/ask/{answer_id:name}/cancel")
async def cancel(request: Request, visit: Writing, answer_id: str) -> Response:
    form, back = await read_form(request), f"/ask/{in_path(answer_id)}"
    await visit.answer(answer_id)
    if not form.confirmed:
        return confirm(request, "Cancel this question?", form.fields, back)
    async with acting(request, "answer.cancel", named(answer_id)):
        ended = await visit.answers.cancel(answer_id, tenant=visit.tenant)
    if ended.state is AnswerState.CANCELLED:
        return redirect(back, Flash("good", "Question cancelled."))
    return redirect(back, Flash("bad", f"The question was already {ended.state}."))
