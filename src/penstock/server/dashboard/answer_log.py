"""Follows the log of an answer while it is written."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from penstock.answers.event_text import in_words
from penstock.answers.sentences import cited
from penstock.api.tenant_view import TenantView
from penstock.model.answer import Answer, Citation
from penstock.server.dashboard.filters import visible

PASSAGE = "passage-"
"""Prefix of the ids of passages on a page; the number follows."""


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
    marks = [(one.start, one.end, one.number) for one in citations]
    marks += [(start, end, 0) for start, end in unsupported]
    parts, done = [], 0
    for start, end, number in sorted(marks):
        parts.append(escape(visible(text[done:start])))
        within = escape(visible(text[start:end]))
        if number:
            link = Markup('<a class="cite" href="#{}{}">{}</a>')
            parts.append(link.format(PASSAGE, number, within))
        else:
            parts.append(Markup('<span class="uncited">{}</span>').format(within))
        done = end
    parts.append(escape(visible(text[done:])))
    return Markup("").join(parts)
