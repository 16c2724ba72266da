"""The part of a chunk that shows why it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.retrieval.query import query_terms
from penstock.retrieval.snippet import Snippet, _best, _Match, _matches, snippet

ENGLISH = (
    "The pump moves water. It is old and has been repaired three times since the flood. "
    "Nobody knows how the COVID-19 rules changed foo_bar in v1.2.3, but the connected users "
    "were happy about their connections. That is the end of the story."
)
JAPANESE = (
    "この都市は平野の中央にある。人口は約百万人で、周辺で最も大きい。"
    "古くは別の名で呼ばれ、城下町として栄えた。鉄道の開通の後に現在の名に改められた。"
)


def weights(question: str) -> dict[str, float]:
    return dict.fromkeys(query_terms(question).terms, 1.0)


def marked(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.marks]


def test_short_text_is_shown_whole() -> None:
    found = snippet("The old pump.", weights("pump"))
    assert (found.text, marked(found)) == ("The old pump.", ["pump"])


def test_passage_with_the_most_terms_is_shown() -> None:
    found = snippet(ENGLISH, weights("connecting happy users"), 80)
    assert marked(found) == ["connected", "users", "happy", "connections"]


def test_heavier_term_decides() -> None:
    pump, story = weights("pump"), weights("story")
    assert marked(snippet(ENGLISH, pump | dict.fromkeys(story, 2.0), 60)) == ["story"]
    assert marked(snippet(ENGLISH, dict.fromkeys(pump, 2.0) | story, 60)) == ["pump"]


def test_it_starts_where_a_sentence_does() -> None:
    found = snippet(ENGLISH, weights("covid-19 rules"), 120)
    assert found.text.startswith("Nobody knows")


def test_words_are_never_cut() -> None:
    for length in range(15, 140):
        found = snippet(ENGLISH, weights("repaired flood"), length)
        around = ENGLISH[found.start - 1 : found.start] + ENGLISH[found.end : found.end + 1]
        assert around.strip(" ") in ("", "."), (length, found.text)


def test_whole_identifier_and_its_part_are_marked() -> None:
    assert marked(snippet(ENGLISH, weights("foo_bar"), 80)) == ["foo_bar"]
    assert marked(snippet(ENGLISH, weights("bar"), 80)) == ["bar"]


def test_japanese_is_cut_at_sentences_and_marked_by_characters() -> None:
    found = snippet(JAPANESE, weights("城下町の鉄道"), 40)
    assert found.text.startswith("古くは")
    assert "城下町" in marked(found)


def test_half_width_text_is_marked_where_it_stands() -> None:
    assert marked(snippet("ﾃﾞｰﾀの保存", weights("データ"))) == ["ﾃﾞｰﾀ"]


def test_one_syllable_of_korean_is_marked_only_where_a_word_begins() -> None:
    assert marked(snippet("건물에서 물은 차갑다", weights("물"))) == ["물"]
    found = snippet("건물에서 물은 차갑다", weights("물"))
    assert found.marks == ((5, 6),)


def test_without_a_match_it_is_the_beginning() -> None:
    found = snippet(ENGLISH, weights("zebra"), 40)
    assert (found.start, found.marks) == (0, ())
    assert found.text.startswith("The pump moves water.")


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from(["pump", "물은 ", "東京", "。", ". ", " ", "\n", "v1.2"])).map(
        "".join
    ),
    st.sampled_from(["pump", "東京の物", "물 pump", "v1.2", ""]),
    st.integers(1, 120),
)
def test_it_is_a_bounded_part_of_the_text_with_marks_inside(
    text: str, question: str, length: int
) -> None:
    found = snippet(text, weights(question), length)
    assert len(found.text) <= length
    assert text[found.start : found.end] == found.text
    ends = [place for mark in found.marks for place in mark]
    assert ends == sorted(ends)
    assert all(0 <= start < end <= len(found.text) for start, end in found.marks)


def best_of_all(matches: Sequence[_Match], weights: Mapping[str, float], length: int) -> Any:
    """What `_best` finds, by looking at all that follow each match."""
    best, span = 0.0, (0, 0)
    for at, first in enumerate(matches):
        held: set[str] = set()
        end = first.start
        for match in matches[at:]:
            if match.end - first.start > length:
                break
            if match.terms - held:
                held |= match.terms
                end = match.end
        weight = sum(weights[term] for term in held)
        if weight > best:
            best, span = weight, (first.start, end)
    return span


@given(
    st.lists(st.sampled_from(["pump", "물은 ", "東京", "京都", ". ", " ", "v1.2", "v1"])).map(
        "".join
    ),
    st.integers(1, 40),
)
def test_the_heaviest_part_is_found(text: str, length: int) -> None:
    terms = query_terms("東京都の物 물 pump v1.2").terms
    weights = {term: 2.0**-place for place, term in enumerate(terms)}  # sums without rounding
    matches = list(_matches(text, weights))
    assert _best(matches, weights, length) == best_of_all(matches, weights, length)


class Watched(list[_Match]):
    """Counts the items that are looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.looks += len(found) if isinstance(place, slice) else 1
        return found


def test_where_every_character_matches_the_work_grows_with_the_text() -> None:
    weights = dict.fromkeys("東京都水門", 1.0) | dict.fromkeys(["東京", "水門"], 2.0)
    matches = Watched(_matches("東京都水門" * 800, weights))
    _best(matches, weights, 240)
    assert len(matches) > 4000
    assert matches.looks < 4 * len(matches)
