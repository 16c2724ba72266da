"""Findings of several providers: each work once, nothing lost, whoever answers first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.finding import Finding
from penstock.research.merge import Merged, merge


def finding(provider: str = "a", title: str = "Wheels", **more: Any) -> Finding:
    """One that shares nothing with another of another provider or title, unless it is given."""
    place = f"{provider}/{title}".replace(" ", "-")
    return Finding(
        **{"url": f"https://{place}", "provider_id": place, **more}, provider=provider, title=title
    )


def grouped(*findings: Finding) -> list[list[str]]:
    """The ids of what became one, in order."""
    merged = merge([[one] for one in findings])
    return sorted(sorted(one.provider_id for one in work.findings) for work in merged)


def one_work(*findings: Finding) -> bool:
    return len(grouped(*findings)) == 1


def test_works_with_the_same_doi_are_one_however_it_is_spelt() -> None:
    assert one_work(
        finding("a", "Wheels", doi="10.1000/x"),
        finding("b", "Mills", doi="https://doi.org/10.1000/X"),
        finding("c", "Water", url="https://doi.org/10.1000/x"),
    )


def test_preprint_and_its_publication_are_one_where_somebody_knows_both() -> None:
    knows = finding("a", "Wheels", doi="10.1000/x", arxiv_id="2401.01234")
    preprint = finding("b", "On wheels", doi="10.48550/arxiv.2401.01234")
    published = finding("c", "Of wheels", doi="10.1000/x")
    assert one_work(preprint, knows, published)
    assert len(grouped(preprint, published)) == 2


def test_works_at_the_same_address_are_one() -> None:
    page = finding("a", "Wheels", url="https://mill.example/x/?utm_source=y#z")
    assert one_work(page, finding("b", "Mills", url="http://mill.example:80/x"))
    assert one_work(page, finding("b", "Mills", open_access_url="http://mill.example/x"))


def test_works_of_the_same_title_are_one_where_the_years_agree() -> None:
    assert one_work(
        finding("a", "Water Wheels!", year=2020), finding("b", "water-wheels", year=2020)
    )
    assert one_work(finding("a", "Wheels", year=2020), finding("b", "Wheels"))
    assert not one_work(finding("a", "Wheels", year=2020), finding("b", "Wheels", year=2021))


def test_title_without_a_year_is_not_given_to_one_of_two_years() -> None:
    first, second = finding("a", "Wheels", year=2020), finding("b", "Wheels", year=2021)
    assert len(grouped(first, second, finding("c", "Wheels"))) == 3


def test_title_without_letters_joins_nothing() -> None:
    assert not one_work(finding("a", "?!"), finding("b", "..."))


def test_title_or_address_does_not_join_works_that_have_different_dois() -> None:
    one = finding("a", "Editorial", doi="10.1000/x", year=2020, url="https://journal.example")
    other = finding("b", "Editorial", doi="10.1000/y", year=2020, url="https://journal.example")
    assert len(grouped(one, other)) == 2
    nameless = [finding(provider, "Editorial", year=2020) for provider in ("c", "d")]
    assert grouped(one, other, *nameless) == sorted(
        [[one.provider_id], [other.provider_id], sorted(two.provider_id for two in nameless)]
    )


def test_preprint_and_publication_of_the_same_title_and_year_are_one() -> None:
    preprint = finding("a", "Wheels", arxiv_id="2401.01234", year=2024)
    assert one_work(preprint, finding("b", "Wheels", doi="10.1000/x", year=2024))
    another = finding("b", "Wheels", arxiv_id="2401.99999", year=2024)
    assert not one_work(preprint, another)


def test_fuller_record_wins_and_is_completed_by_the_others() -> None:
    fuller = finding(
        "b",
        "Wheels",
        doi="10.48550/arxiv.2401.01234",
        year=2024,
        authors=("Ada",),
        abstract="Turn.",
        extra={"cited_by": 3},
    )
    other = finding(
        "a",
        "WHEELS",
        doi="10.1000/x",
        arxiv_id="2401.01234",
        open_access_url="https://free.example",
        extra={"cited_by": 9, "venue": "J"},
    )
    (work,) = merge([[other], [fuller]])
    assert work.finding == Finding(
        "b",
        fuller.provider_id,
        "Wheels",
        fuller.url,
        ("Ada",),
        2024,
        "10.1000/x",
        "2401.01234",
        "Turn.",
        "https://free.example",
        {"cited_by": 3, "venue": "J"},
    )
    assert work.findings == (fuller, other)
    assert work.providers == ("a", "b")


def test_what_several_providers_have_comes_before_the_first_of_one() -> None:
    def both(provider: str) -> Finding:
        return finding(provider, "Both", doi="10.1000/x")

    first = [finding("a", "First of a"), both("a"), finding("a", "Third of a")]
    second = [finding("b", "First of b"), finding("b", "Second of b"), both("b")]
    titles = [work.finding.title for work in merge([first, second])]
    assert titles == ["Both", "First of a", "First of b", "Second of b", "Third of a"]


def test_provider_that_has_a_work_twice_does_not_count_twice() -> None:
    twice = [finding("a", f"W {n}", doi="10.1000/x") for n in range(2)]
    lists = [[finding("a", "First"), *twice], [finding("b", "Only")]]
    titles = [work.finding.title for work in merge(lists)]
    assert titles == ["First", "Only", "W 0"]


def test_nothing_merged_is_nothing() -> None:
    assert merge([]) == merge([[], []]) == []


dois = st.sampled_from([None, "10.1000/x", "10.1000/y", "10.48550/arxiv.2401.00001"])
papers = st.sampled_from([None, "2401.00001", "2401.00002"])
urls = st.sampled_from(
    [f"{scheme}://m.example/{n}" for scheme in ("http", "https") for n in range(6)]
)
findings = st.builds(
    Finding,
    provider=st.just(""),
    provider_id=st.sampled_from("1234"),
    title=st.sampled_from(["Wheels", "wheels!", "Mills", "Water", "?"]),
    url=urls,
    authors=st.sampled_from([(), ("Ada",)]),
    year=st.sampled_from([None, None, 2020, 2021]),
    doi=dois,
    arxiv_id=papers,
    abstract=st.sampled_from([None, "Turn."]),
    open_access_url=st.none() | urls,
    extra=st.sampled_from([{}, {"cited_by": 1}]),
)


@st.composite
def answers(draw: st.DrawFn) -> list[list[Finding]]:
    """What up to four providers found."""
    lists = draw(st.lists(st.lists(findings, max_size=6), max_size=4))
    return [
        [
            Finding(**{name: getattr(one, name) for name in Finding.__slots__} | {"provider": who})
            for one in found
        ]
        for who, found in zip("abcd", lists, strict=False)
    ]


def as_set(works: Sequence[Merged]) -> Counter[str]:
    return Counter(repr(work) for work in works)


@given(answers())
def test_nothing_is_lost_and_nothing_is_there_twice(lists: list[list[Finding]]) -> None:
    kept = Counter(repr(one) for work in merge(lists) for one in work.findings)
    assert kept == Counter(repr(one) for found in lists for one in found)


@given(answers(), st.randoms())
def test_order_of_the_providers_changes_nothing(lists: list[list[Finding]], random: Any) -> None:
    other = list(lists)
    random.shuffle(other)
    assert merge(other) == merge(lists)


@given(answers(), st.randoms())
def test_what_is_one_work_does_not_depend_on_ranks(lists: list[list[Finding]], random: Any) -> None:
    other = [random.sample(found, len(found)) for found in lists]
    assert as_set(merge(other)) == as_set(merge(lists))


@given(answers())
def test_merging_again_what_was_merged_changes_nothing(lists: list[list[Finding]]) -> None:
    works = merge(lists)
    again = merge([[one for work in works for one in work.findings]])
    assert as_set(again) == as_set(works)


@given(answers())
def test_no_two_works_share_a_doi_or_an_arxiv_id(lists: list[list[Finding]]) -> None:
    for name in ("doi", "arxiv_id"):
        owners = [
            (value, number)
            for number, work in enumerate(merge(lists))
            for value in {getattr(one, name) for one in work.findings} - {None}
        ]
        assert len(owners) == len({value for value, _ in owners})


@given(answers())
def test_merged_work_says_nothing_that_no_finding_of_it_says(lists: list[list[Finding]]) -> None:
    for work in merge(lists):
        for name in ("title", "url", "year", "doi", "arxiv_id", "abstract", "open_access_url"):
            said = {getattr(one, name) for one in work.findings}
            assert getattr(work.finding, name) in said
            assert getattr(work.finding, name) is not None or said == {None}
