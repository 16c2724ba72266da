"""Values of documents, research and answers as the dashboard shows them."""

import pytest

from penstock.model.answer import Citation
from penstock.model.research import SearchState
from penstock.server.dashboard.filters import at_document, marked
from penstock.server.dashboard.page_route import number, typed, whole_number
from penstock.server.dashboard.screens.ask import with_links
from penstock.server.dashboard.screens.task import providers_of
from penstock.server.dashboard.session import Form
from penstock.server.problems import Problem
from penstock.wire.tasks import SearchView, Trouble


def test_citations_lead_to_their_passages_and_the_rest_is_text() -> None:
    text = "It <turns> [1]. So they say."
    said = with_links(text, [Citation(1, 11, 14)], [(16, 28)])
    assert said == (
        'It &lt;turns&gt; <a class="cite" href="#passage-1">[1]</a>. '
        '<span class="uncited">So they say.</span>'
    )


def test_words_that_were_asked_for_are_marked_and_nothing_else_is_markup() -> None:
    assert marked("a <b> heron\x1b", [(6, 11)]) == "a &lt;b&gt; <mark>heron</mark>\\x1b"


def test_a_document_has_an_address_whatever_it_is_called() -> None:
    assert at_document("a/b?c#d", "default") == "/documents/a%2Fb%3Fc%23d"
    assert at_document("a", "my mills") == "/documents/a?collection=my%20mills"
    assert at_document("a", "x", 47) == "/documents/a?collection=x&from=40#chunk-47"
    assert at_document("a", "default", 3) == "/documents/a?from=0#chunk-3"


@pytest.mark.parametrize("given", ["soon", "1,5", "nan", "inf", "2.5", "1e300"])
def test_what_is_no_whole_number_is_refused(given: str) -> None:
    with pytest.raises(Problem):
        whole_number(Form({"pages": [given]}), "pages", "Pages")


def test_numbers_may_be_left_out_and_what_was_typed_is_kept_as_it_was() -> None:
    form = Form({"pages": [" 7 "], "text": [" a\r\n"]})
    assert (whole_number(form, "pages", "Pages"), number(form, "gone", "Gone")) == (7, None)
    assert typed(form, "text", "gone") == {"text": " a\r\n", "gone": ""}


def test_searches_and_errors_are_counted_by_provider() -> None:
    searches = (
        SearchView("1", 1, "mills", SearchState.RUNNING, ("arxiv", "crossref"), 0, None),
        SearchView("2", 2, "weirs", SearchState.COMPLETED, ("arxiv",), 0, None),
    )
    errors = (Trouble("weirs", "arxiv", None, "HTTP 500"), Trouble("weirs", None, "http://x", "no"))
    arxiv, crossref = providers_of(searches, (), errors)
    assert (arxiv.searches, arxiv.running, len(arxiv.errors)) == (2, 1, 1)
    assert (crossref.searches, crossref.running, len(crossref.errors)) == (1, 1, 0)
