"""Names of works in one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.research.merge import arxiv_id_of, canonical_url, doi_of, folded_title


@pytest.mark.parametrize(
    "text",
    [
        "10.1000/ABC(1)",
        " doi:10.1000/abc(1) ",
        "DOI: 10.1000/abc(1)",
        "https://doi.org/10.1000/abc(1)",
        "http://dx.doi.org/10.1000/ABC%281%29",
        "https://doi.org/10.1000/abc(1)?nosfx=y#x",
    ],
)
def test_doi_has_one_spelling(text: str) -> None:
    assert doi_of(text) == "10.1000/abc(1)"


@pytest.mark.parametrize(
    "text", [None, "", "10.1000", "11.1000/x", "https://x.example/10.1000/x", "10.1000/a b"]
)
def test_what_is_no_doi_is_none(text: str | None) -> None:
    assert doi_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "2401.01234",
        "arXiv:2401.01234v3",
        "http://arxiv.org/abs/2401.01234v1",
        "https://www.arxiv.org/pdf/2401.01234.pdf",
        "https://export.arxiv.org/html/2401.01234?x=1",
        "10.48550/arXiv.2401.01234",
        "https://doi.org/10.48550/ARXIV.2401.01234",
    ],
)
def test_arxiv_id_is_found_in_its_pages_and_its_doi(text: str) -> None:
    assert arxiv_id_of(text) == "2401.01234"


def test_old_arxiv_ids_are_known_too() -> None:
    assert arxiv_id_of("https://arxiv.org/abs/hep-th/9901001v2") == "hep-th/9901001"
    assert arxiv_id_of("math.GT/0309136") == "math.gt/0309136"


@pytest.mark.parametrize("text", [None, "", "2401", "https://arxiv.org/list/cs", "10.1000/x"])
def test_what_is_no_arxiv_id_is_none(text: str | None) -> None:
    assert arxiv_id_of(text) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://Mill.example/wheels?id=1",
        "http://mill.example/wheels?id=1",
        "http://mill.example:80/wheels/?id=1",
        "https://mill.example:443/wheels?id=1#top",
        "https://mill.example./wheels?utm_source=a&id=1&fbclid=b&&gclid",
    ],
)
def test_address_of_a_page_has_one_spelling(url: str) -> None:
    assert canonical_url(url) == "mill.example/wheels?id=1"


@pytest.mark.parametrize(
    "other",
    [
        "https://mill.example/Wheels?id=1",
        "https://mill.example/wheels?id=2",
        "https://mill.example/wheels",
        "https://mill.example:8080/wheels?id=1",
        "https://www.mill.example/wheels?id=1",
    ],
)
def test_address_that_may_be_of_another_page_is_another(other: str) -> None:
    assert canonical_url(other) != canonical_url("https://mill.example/wheels?id=1")


@pytest.mark.parametrize("url", ["", "mill.example", "ftp://mill.example/", "http://[x", "http://"])
def test_what_is_no_web_address_is_none(url: str) -> None:
    assert canonical_url(url) is None


@given(st.text())
def test_no_text_is_too_strange_to_be_looked_at(text: str) -> None:
    for look in (doi_of, arxiv_id_of, canonical_url, folded_title):
        look(text)
        look(f"https://{text}")


def test_title_is_what_it_says_however_it_was_typed() -> None:
    assert folded_title("Über — “Wasser-Räder”, Part II.") == folded_title(
        "uber wasserrader part ii"
    )
    assert folded_title("ＷＡＴＥＲ ｗｈｅｅｌｓ") == folded_title("Water wheels")


@pytest.mark.parametrize(
    ("one", "other"), [("か", "が"), ("कि", "की"), ("물레", "물래"), ("A1", "A2")]
)
def test_signs_that_make_another_word_are_kept(one: str, other: str) -> None:
    assert folded_title(one) != folded_title(other)
