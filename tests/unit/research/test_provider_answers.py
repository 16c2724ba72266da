"""Answers of providers, read without trust: whatever comes, it is findings or a ProviderError."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ProviderError
from penstock.model.finding import Finding
from penstock.model.providers import ADDRESSES
from penstock.research.providers.arxiv import Arxiv
from penstock.research.providers.crossref import Crossref
from penstock.research.providers.fields import link, plain
from penstock.research.providers.openalex import OpenAlex, abstract_of
from penstock.research.providers.paged import PagedProvider
from penstock.research.providers.searxng import Searxng
from penstock.research.providers.semantic_scholar import SemanticScholar
from tests.support.provider_server import (
    Work,
    arxiv_entry,
    arxiv_feed,
    crossref_row,
    openalex_row,
    scholar_row,
    searxng_row,
)

ROWS: dict[type[PagedProvider], Any] = {
    OpenAlex: openalex_row(Work(1)),
    SemanticScholar: scholar_row(Work(1)),
    Crossref: crossref_row(Work(1)),
    Searxng: searxng_row(Work(1)),
}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def opened(kind: type[PagedProvider]) -> PagedProvider:
    return kind(ADDRESSES[kind.name] or "https://search.example")


@pytest.mark.parametrize("kind", list(ROWS))
@given(data=st.data())
def test_row_with_anything_in_any_of_its_fields_is_a_finding_or_of_no_use(
    kind: type[PagedProvider], data: st.DataObject
) -> None:
    row = dict(ROWS[kind])
    for key in data.draw(st.sets(st.sampled_from(sorted(row)))):
        row[key] = data.draw(values)
    finding = opened(kind).finding(row)
    if finding is not None:
        assert finding.title
        assert finding.provider_id
        assert finding.url.lower().startswith("http") or kind is OpenAlex
        json.dumps(finding.extra)


def read(provider: PagedProvider, body: bytes) -> list[Finding | None] | str:
    """The rows of an answer, or what is said of it."""
    try:
        rows, _ = provider.rows(body, 10, None)
    except ProviderError as error:
        return str(error)
    return [provider.finding(row) for row in rows]


@pytest.mark.parametrize("kind", [*ROWS, Arxiv])
@given(body=values.map(lambda value: json.dumps(value).encode()) | st.binary())
def test_answer_with_anything_in_it_is_rows_or_a_provider_error(
    kind: type[PagedProvider], body: bytes
) -> None:
    answer = read(opened(kind), body)
    assert answer == [] or f"{answer}".startswith(f"{kind.name} returned")


@given(at=st.integers(0, 2000), other=st.text("<>/&;abc! [", max_size=6))
def test_feed_changed_anywhere_is_entries_or_a_provider_error(at: int, other: str) -> None:
    feed = arxiv_feed([arxiv_entry(Work(1)), arxiv_entry(Work(2))], 2).decode()
    answer = read(opened(Arxiv), (feed[:at] + other + feed[at:]).encode())
    assert len(answer) == 2 or f"{answer}".startswith("arxiv")


@given(st.lists(st.text("abcé水", min_size=1, max_size=4), min_size=1, max_size=30))
def test_abstract_is_put_together_again_from_the_places_of_its_words(words: list[str]) -> None:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        index.setdefault(word, []).append(place)
    assert abstract_of(index) == " ".join(words)


@pytest.mark.parametrize("index", [None, [], "text", {}, {"a": 1}, {"a": ["1", None, True]}])
def test_index_that_is_none_gives_no_abstract(index: Any) -> None:
    assert abstract_of(index) is None


def test_place_far_off_costs_nothing() -> None:
    assert abstract_of({"end": [10**18], "start": [0]}) == "start end"


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("CO<sub>2</sub> in <i>E. coli</i>", "CO2 in E. coli"),
        ("<jats:p>One.</jats:p><jats:p>Two.</jats:p>", "One. Two."),
        ("a<b and c>d", "a<b and c>d"),
        ("x < y &amp;&lt;i&gt;", "x < y &<i>"),
        ("<img src=x>", "<img src=x>"),
        ("<p>", None),
        (5, None),
    ],
)
def test_tags_of_publishers_are_taken_out_and_nothing_else(
    given_: Any, expected: str | None
) -> None:
    assert plain(given_) == expected


@pytest.mark.parametrize("bad", ["javascript:alert(1)", "/relative", "https://", "", None, 5, "x"])
def test_what_is_no_web_address_is_no_link(bad: Any) -> None:
    assert link(bad) is None
