"""Which terms a text is found by, and what of a question the index is asked for."""

from __future__ import annotations

import math
import sqlite3
import string
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.postgres.documents.text import bm25
from penstock.retrieval.query import (
    MAX_TERMS,
    Query,
    Role,
    WeighedQuery,
    match_expression,
    query_terms,
    scope_term,
    weigh,
)
from penstock.retrieval.stem import stem
from penstock.retrieval.stop_words import language, without_particles
from penstock.retrieval.terms import FTS5_TOKENIZER, LONGEST_TERM, index_terms, script

ANYTHING = st.text(max_size=200) | st.text(
    alphabet=string.printable + "\"'\\*^(){}:-+~|&!東京かなカナ한국어é\u0301\u200b\ud800\x00",
    max_size=200,
)


class Index:
    """An FTS5 table as a store keeps it."""

    def __init__(self, *texts: str, scope: str = "") -> None:
        self.texts = texts
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute(
            f'create virtual table chunks using fts5(scope, terms, tokenize="{FTS5_TOKENIZER}")'
        )
        self.connection.executemany(
            "insert into chunks (rowid, scope, terms) values (?, ?, ?)",
            [(at, scope, " ".join(index_terms(text))) for at, text in enumerate(texts)],
        )

    def weighed(self, question: str) -> WeighedQuery:
        holding = Counter(term for text in self.texts for term in set(index_terms(text)))
        return weigh(query_terms(question), holding, len(self.texts))

    def search(self, question: str, *scope: str) -> dict[int, float]:
        expression = match_expression(self.weighed(question), scope)
        if expression is None:
            return {}
        rows = self.connection.execute(
            "select rowid, -bm25(chunks, 0, 1) from chunks where chunks match ?", (expression,)
        )
        return dict(rows.fetchall())

    def finds(self, question: str) -> set[int]:
        return set(self.search(question))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("the variable foo_bar is set", "foo_bar"),
        ("the variable foo_bar is set", "bar"),
        ("upgrade to v1.2.3 now", "V1.2.3"),
        ("the COVID-19 years", "covid-19"),
        ("the COVID-19 years", "covid"),
        ("the COVID\u201119 years", "COVID-19"),
        ("written in C++ and C#", "c++"),
        ("written in C++ and C#", "c#"),
        ("\uff26\uff35\uff2c\uff2c width", "full width"),
        ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース"),
        ("データベースの設計", "設計"),
        ("東京都庁の場所", "都庁"),
        ("東京都庁の場所", "場"),
        ("暗号を解く", "暗号"),
        ("물은 차갑다", "물이 차가운"),
        ("서울에서 만나요", "서울"),
        ("un café à Paris", "cafe"),
        ("un cafe\u0301 à Paris", "CAFÉ"),
        ("Straße nach Köln", "strasse"),
        ("connected devices", "connection of a device"),
        ("Привет, мир", "мир"),
        ("नमस्ते दुनिया", "दुनिया"),
        ("ภาษาไทยง่าย", "ไทย"),
        ("a 𠮷野家 shop", "𠮷野家"),
    ],
)
def test_text_is_found_by(text: str, question: str) -> None:
    assert Index(text, "something else entirely", "その他").finds(question) == {0}


def test_whole_identifier_counts_more_than_its_parts() -> None:
    found = Index("foo and bar", "foo_bar here", "one", "two", "three").search("foo_bar")
    assert found[1] > found[0]


@pytest.mark.parametrize(
    "words",
    [
        ("connect", "connected", "connecting", "connection", "connections"),
        ("happy", "happiness"),
        ("city", "cities"),
        ("certify", "certified"),
        ("certificate", "certificates", "certification"),
        ("localize", "localization", "localisation"),
        ("stop", "stopped", "stopping", "stops"),
        ("periodic", "periodically"),
        ("hope", "hoped", "hoping"),
    ],
)
def test_forms_of_a_word_have_one_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("bus", "bu"), ("cement", "cem"), ("analysis", "analyst"), ("sing", "s"), ("string", "str")],
)
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(ANYTHING)
def test_no_term_can_be_mistaken_for_syntax(text: str) -> None:
    for term in index_terms(text):
        assert 0 < len(term) <= LONGEST_TERM
        assert not set(term) & set(" \t\n\"'\\:*^(){}\x00")
        term.encode()


@given(ANYTHING)
def test_fts5_takes_terms_as_they_are(text: str) -> None:
    """What the tokenizer of the table makes of them is what was put in."""
    terms = index_terms(text)
    index = Index(text)
    index.connection.execute("create virtual table held using fts5vocab(chunks, instance)")
    rows = index.connection.execute("select term from held where col = 'terms' order by offset")
    assert [term for (term,) in rows] == terms


@given(ANYTHING, ANYTHING)
@settings(max_examples=200)
def test_nothing_typed_is_a_syntax_error(text: str, question: str) -> None:
    found = Index(text, "another").finds(question)
    shared = set(index_terms(text)) & set(query_terms(question).terms)
    assert (0 in found) == bool(shared)


@given(st.text(min_size=1, max_size=60))
def test_text_is_found_by_itself(text: str) -> None:
    if query_terms(text).terms:
        assert 0 in Index(text).finds(text)


def test_endless_question_has_a_bounded_number_of_terms() -> None:
    question = " ".join(f"word{number}" for number in range(100_000))
    assert len(query_terms(question).terms) == MAX_TERMS
    assert Index(question[:4000], "x").finds(question) == {0}


def test_endless_word_is_cut_on_both_sides_alike() -> None:
    assert Index("a" * 10_000, "b").finds("A" * 5_000) == {0}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is a heat pump?", "heat pump"),
        ("How much did Steinmatt produce in 2025?", "Steinmatt produce 2025"),
        ("What's the dog's name, and why doesn't it bark?", "dog name bark"),
        ("Wer ist der Finanzchef der Firma?", "Finanzchef Firma"),
        ("Die Pumpe ist kaputt", "Pumpe kaputt"),
        ("À quoi sert l'eau de la pompe ?", "sert eau pompe"),
        ("¿Cuánto cuesta la bomba?", "cuesta bomba"),
        ("HOW MUCH DOES IT COST", "COST"),
        ("pumps AND valves", "pumps valves"),
        ("state-of-the-art pump", "state-of-the-art pump"),
    ],
)
def test_stop_words_are_not_looked_for(question: str, words: str) -> None:
    asked = set(query_terms(question).terms)
    assert asked == set(index_terms(words)) - {"of", "the"}


@pytest.mark.parametrize("question", ["in the", "What is it?", "why", "to be or not to be", "und"])
def test_stop_words_alone_find_nothing(question: str) -> None:
    assert Index(question, "another").finds(question) == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Which bird sleeps while it is flying?", "en"),
        ("Welcher Vogel schläft im Flug?", "de"),
        ("Was kostet eine Karte?", "de"),
        ("Comment les pieuvres changent-elles de couleur ?", "fr"),
        ("¿Cuándo se poda un manzano?", "es"),
        ("The keeper was late. De Vries wrote in his log that the gate had been open.", "en"),
        ("Quando se podam as macieiras e como?", "pt"),
        ("heat pump", ""),
        ("was ist", "de"),
        ("was", ""),
        ("ヒートポンプとは何ですか", ""),
    ],
)
def test_language_is_told_by_stop_words_or_not_at_all(text: str, name: str) -> None:
    assert language(text) == name


@pytest.mark.parametrize(
    "question",
    ["die casting", "civil war", "IT budget", "WHO guidelines", "US exports", "van door", "MIT"],
)
def test_words_that_only_look_like_stop_words_are_looked_for(question: str) -> None:
    assert query_terms(question).terms == tuple(index_terms(question))


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("木綿豆腐とは何ですか。", "木綿豆腐"),
        ("桜がいっせいに咲くのはどうして？", "桜がいっせいに咲く"),
        ("온돌 무엇인가요?", "온돌"),
        ("한지 질긴 이유는?", "한지 질긴"),
    ],
)
def test_words_that_only_ask_are_not_looked_for(question: str, subject: str) -> None:
    assert query_terms(question).terms == tuple(dict.fromkeys(index_terms(subject)))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("冷蔵庫の温度は", "冷蔵庫 温度"),
        ("サーバーからの応答", "サーバー 応答"),
        ("TTLを変更するとき", "TTL 変更"),
        ("냉장고에 있는 김치를", "냉장고 있는 김치"),
        ("제주에서 서울까지", "제주 서울"),
        ("배추를 절이려면", "배추 절이"),
    ],
)
def test_particles_and_endings_are_not_looked_for(question: str, words: str) -> None:
    assert query_terms(question).terms == tuple(dict.fromkeys(index_terms(words)))


@pytest.mark.parametrize("text", ["もののけ", "さくら", "물은", "나는", "アは", "のは"])
def test_what_would_leave_nothing_of_a_word_is_looked_for_as_it_is(text: str) -> None:
    assert query_terms(text).terms == tuple(dict.fromkeys(index_terms(text)))


@given(st.text("はのするとき猫犬アイ가은는에서 aB1", min_size=1, max_size=12))
def test_text_is_found_by_itself_whatever_is_taken_for_a_particle(text: str) -> None:
    if query_terms(text).terms:
        assert 0 in Index(text).finds(text)


def test_particles_of_an_endless_text_are_found_in_no_time() -> None:
    for text in ("猫" + "する" * 2000 + "ぬ", "가" * 4000, "가은" * 2000):
        start = time.process_time()
        without_particles(text)
        assert time.process_time() - start < 0.5


@pytest.mark.parametrize("question", ["なぜですか", "왜?"])
def test_question_of_nothing_but_asking_is_looked_for_as_it_is(question: str) -> None:
    assert query_terms(question).terms


def test_empty_question_asks_for_nothing() -> None:
    weighed = weigh(query_terms(" ?!… "), {}, 10)
    assert match_expression(weighed) is None


def roles(terms: str, frequencies: dict[str, int], total: int, postings: int) -> dict[str, Role]:
    query = Query(terms, tuple(terms.split()), "latin")
    weighed = weigh(query, frequencies, total, postings)
    return {term.text: term.role for term in weighed.terms}


def test_frequent_terms_are_left_out_when_rarer_ones_fill_the_budget() -> None:
    found = roles("the rare pump", {"the": 900, "rare": 10, "pump": 200}, 1000, postings=300)
    assert found == {"the": Role.FREQUENT, "rare": Role.ASKED, "pump": Role.ASKED}


def test_one_term_is_asked_for_however_frequent() -> None:
    assert roles("the", {"the": 900}, 1000, postings=10) == {"the": Role.ASKED}


def test_term_that_no_chunk_holds_is_not_asked_for_but_counts_as_missing() -> None:
    query = Query("a b", ("a", "b"), "latin")
    weighed = weigh(query, {"a": 10}, 1000)
    assert weighed.asked == ("a",)
    assert weighed.ideal == pytest.approx(math.log(990.5 / 10.5) + math.log(1000.5 / 0.5))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 1000), max_size=8),
    st.integers(0, 2000),
    st.integers(0, 3000),
)
def test_budget_of_postings_is_kept(held: dict[str, int], total: int, postings: int) -> None:
    weighed = weigh(Query("", tuple("abcdefgh"), ""), held, total, postings)
    read = sum(held[term] for term in weighed.asked)
    assert read <= postings or len(weighed.asked) == 1
    assert all(math.isfinite(term.weight) and term.weight > 0 for term in weighed.terms)


def test_scope_narrows_a_search_to_what_holds_all_of_it() -> None:
    tenant, other = scope_term("tenant", 'a"b c'), scope_term("tenant", "b")
    language = scope_term("meta.language", "ja")
    index = Index("water pump", "a", "b", scope=f"{tenant} {language}")
    assert set(index.search("pump", tenant)) == {0}
    assert set(index.search("pump", tenant, language)) == {0}
    assert index.search("pump", tenant, other) == {}


def test_scope_of_one_name_is_not_that_of_another() -> None:
    values = {scope_term(*pair) for pair in [("a", "b"), ("a", "c"), ("b", "b"), ("ab", "")]}
    assert len(values) == 4


def test_own_bm25_is_that_of_fts5() -> None:
    texts = ["water pump pump", "the pump is old", "cats and dogs", "water " * 40, "birds", "fish"]
    index = Index(*texts)
    found = index.search("old water pump")
    lengths = [len(index_terms(text)) for text in texts]
    weights = index.weighed("old water pump").weights
    for at, score in found.items():
        own = bm25(index_terms(texts[at]), weights, sum(lengths) / len(lengths))
        assert own == pytest.approx(score, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("How does Kubernetes work?", "latin"),
        ("Kubernetes とは何ですか", "han"),
        ("東京都庁", "han"),
        ("Kubernetes 는 무엇인가요", "hangul"),
        ("Как это работает", "cyrillic"),
        ("42 + 17", ""),
        ("", ""),
    ],
)
def test_script_is_that_of_most_letters(text: str, name: str) -> None:
    assert script(text) == name
