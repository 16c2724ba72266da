"""Pages of the web: their main text is kept, or the whole, and which of the two is said."""

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.documents.parse import web_page
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.read import read
from penstock.documents.parsed import Parsed
from penstock.errors import ParserError
from tests.support import documents
from tests.support.page_samples import ARTICLES, ENGLISH, JAPANESE, KOREAN, Article, page

LIMITS = ParseLimits(seconds=300.0)
ROOT = Path(__file__).parents[3]
SENTENCE = "The keeper of gate number {} writes the time of each opening into the book he keeps. "


def from_web(data: bytes, charset: str = "", limits: ParseLimits = LIMITS) -> Parsed:
    return read(data, limits, web=charset)


@pytest.mark.parametrize("article", ARTICLES.values(), ids=ARTICLES)
def test_the_article_is_kept_and_what_stands_around_it_is_not(article: Article) -> None:
    parsed = from_web(page(article))
    for text in (*article.paragraphs, article.section, *article.items):
        assert text in parsed.text
    for text in article.around:
        assert text not in parsed.text
    assert parsed.reading == {
        "text": "main",
        "language": article.language,
        "author": "Ada Weir",
        "date": "2024-03-02",
    }
    assert parsed.mime == "text/html"


@pytest.mark.parametrize("article", ARTICLES.values(), ids=ARTICLES)
def test_headings_lists_and_tables_stay_what_they_are(article: Article) -> None:
    parsed = from_web(page(article))
    assert parsed.title == article.title
    assert [(one.level, one.title) for one in parsed.headings] == [
        (1, article.title),
        (2, article.section),
    ]
    for heading in parsed.headings:
        assert parsed.text.startswith(heading.title, heading.start)
    assert f"\n\n- {article.items[0]}\n\n- {article.items[1]}\n\n" in parsed.text
    rows = "\n".join(" | ".join(row) for row in article.cells)
    assert parsed.text.endswith(f"\n\n{rows}")
    assert f"{article.paragraphs[0]}\n\n{article.paragraphs[1]}" in parsed.text


@pytest.mark.parametrize("article", ARTICLES.values(), ids=ARTICLES)
def test_a_file_loses_its_navigation_as_a_page_of_the_web_does(article: Article) -> None:
    parsed = read(page(article), LIMITS)
    assert parsed.text == from_web(page(article)).text
    assert not any(text in parsed.text for text in article.around)
    assert parsed.reading["text"] == "main"


def test_a_small_file_loses_its_navigation_and_nothing_else() -> None:
    html = (
        "<html><head><title>Gates</title></head><body><nav><a href=/>Home</a> | <a href=/a>About"
        "</a></nav><h1>Gates</h1><p>Open at dawn.</p><footer>Weirstrasse 12</footer></body></html>"
    )
    assert read(html.encode(), LIMITS).text == "Gates\n\nOpen at dawn.\n\nWeirstrasse 12"


@pytest.mark.parametrize(
    "body", ["<nav>Home<p>Open at dawn.</p>", "<nav>Home <p>Open at dawn.</p></nav>"]
)
def test_navigation_that_is_never_closed_or_all_there_is_is_kept(body: str) -> None:
    assert read(f"<html><body>{body}".encode(), LIMITS).text == "Home\n\nOpen at dawn."


def test_a_file_whose_main_text_is_a_small_part_of_it_is_kept_whole() -> None:
    labels = "".join(f"<div><label>Gate {n}</label> <b>{n} m</b></div>" for n in range(400))
    html = (
        f"<html><body><article><p>{ENGLISH.paragraphs[0] * 3}</p></article>{labels}</body></html>"
    )
    assert "Gate 399" in read(html.encode(), LIMITS).text


def test_listings_keep_their_lines_and_words_in_a_paragraph_stay_in_it() -> None:
    prose = " ".join(ENGLISH.paragraphs)
    body = (
        f"<article><p>{prose}</p><p>Call <code>open()</code> with <b>care</b> and <i>love</i>.</p>"
    )
    listing = "<pre><code>for gate in gates:\n    gate.open()</code></pre>"
    text = from_web(
        f"<html><body>{body}{listing}<p>{prose}</p></article></body></html>".encode()
    ).text
    assert "Call open() with care and love." in text
    assert "\n\nfor gate in gates:\n    gate.open()\n\n" in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("<p>Gates are closed.</p>", "its main text has only 17 characters"),
        (
            "<article><p>" + "</p><p>".join(ENGLISH.paragraphs[:2]) + "</p></article>"
            "<form>" + "<label>Gate</label><select><option>North or south</option></select>" * 900,
            "characters look like a main text",
        ),
    ],
    ids=["short", "small part"],
)
def test_where_too_little_is_found_the_whole_text_is_used_and_says_why(body: str, why: str) -> None:
    parsed = from_web(f"<html lang=en><body>{body}</body></html>".encode())
    whole = read(f"<html lang=en><body>{body}</body></html>".encode(), LIMITS)
    assert parsed.text == whole.text
    assert (parsed.reading["text"], parsed.reading["language"]) == ("whole", "en")
    assert why in parsed.reading["why"]


def test_without_the_extra_the_whole_text_is_used_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    parsed = from_web(page())
    assert ENGLISH.around[-1] in parsed.text
    assert parsed.reading["text"] == "whole"
    assert "pip install 'penstock[research]'" in parsed.reading["why"]


def test_what_is_no_html_is_read_as_ever() -> None:
    for name, make in documents.MAKERS.items():
        if name != "html":
            content = make()
            assert from_web(content) == read(content, LIMITS)


@pytest.mark.parametrize(
    ("article", "charset", "encoding"),
    [
        (JAPANESE, "Shift_JIS", "cp932"),
        (JAPANESE, "windows-31j", "cp932"),
        (JAPANESE, "euc-jp", "euc-jp"),
        (KOREAN, "EUC-KR", "cp949"),
        (KOREAN, "ks_c_5601-1987", "cp949"),
        (ENGLISH, "iso-8859-1", "cp1252"),
    ],
)
def test_charset_that_only_the_server_names_is_used(
    article: Article, charset: str, encoding: str
) -> None:
    assert from_web(page(article, charset=encoding), charset).text == from_web(page(article)).text


GREEK = "Το νερό ανοίγει την αυγή και ο φύλακας γράφει την ώρα στο βιβλίο του. "
POLISH = "Śluza otwiera się o świcie, gdy woda sięga drugiego znaku na murze. "


@pytest.mark.parametrize(
    ("text", "charset", "encoding"),
    [(GREEK, "iso-8859-7", "iso-8859-7"), (POLISH, "iso-8859-2", "iso-8859-2")],
)
def test_charset_that_cannot_be_guessed_is_taken_from_the_server(
    text: str, charset: str, encoding: str
) -> None:
    data = f"<html><body><article><p>{text * 5}</p></article></body></html>".encode(encoding)
    assert text.strip() in from_web(data, charset).text
    assert text.strip() not in from_web(data).text, "else this shows nothing"


def test_server_that_names_the_wrong_charset_does_no_harm_where_the_content_shows_it() -> None:
    meta = '<meta charset="Shift_JIS">'
    right = from_web(page(JAPANESE)).text
    assert from_web(page(JAPANESE), "iso-8859-1").text == right
    assert from_web(page(JAPANESE, charset="cp932", head=meta), "utf-8").text == right
    assert from_web(page(JAPANESE, charset="cp932", head=meta), "no-such-charset").text == right
    assert from_web(page(JAPANESE, charset="utf-16"), "euc-kr").text == right


@pytest.mark.parametrize(
    "charset", ["punycode", "unicode_escape", "base64", "idna", "utf-7", "x" * 999]
)
def test_charset_that_is_none_of_pages_is_not_used(charset: str) -> None:
    data = page(JAPANESE, charset="cp932") * 3
    assert JAPANESE.paragraphs[0] in from_web(data, charset).text


DEEP = 3000
PROSE = "".join(SENTENCE.format(n) for n in range(10))
ODD = {
    "deep divs": f"<html><body>{'<div>' * 200_000}{PROSE}",
    "deep spans": f"<html><body><article><p>{'<span>' * DEEP}{PROSE}</span></p></article>",
    "deep lists": f"<html><body><article>{'<ul><li>' * DEEP}{PROSE}",
    "deep tables": f"<html><body>{'<table><tr><td>' * DEEP}{PROSE}",
    "deep fonts": f"<html><body>{'<b><i><font>' * DEEP}{PROSE}",
    "never closed": f"<html><body><article><p>{PROSE}<div><ul><li>{PROSE}<table><tr><td>{PROSE}",
    "closed only": f"<html><body>{'</div></p></table>' * DEEP}<p>{PROSE}</p>",
    "crossed": f"<html><body><p><b>{PROSE}<i></p></b><p>{PROSE}</i></table>",
    "attributes": f"<html><body><p {' a=b' * 50_000}>{PROSE}</p>",
    "json": '<html><head><script type="application/ld+json">{"@type": "Article", "author": '
    + "[" * 100_000
    + f"</script></head><body><p>{PROSE}</p>",
    "nul": f"<html><body><article><p>{PROSE}\x00{PROSE}</p></article>",
    "xml": f'<?xml version="1.0" encoding="shift_jis"?><html><body><p>{PROSE}</p></body></html>',
    "frames": f"<html><frameset><frame src=a></frameset><body><p>{PROSE}</p>",
    "5 MB": f"<html><body>{''.join(f'<p>{SENTENCE.format(n)}</p>' for n in range(55_000))}",
}


@pytest.mark.parametrize("html", ODD.values(), ids=ODD)
def test_odd_pages_are_read_all_the_same(html: str) -> None:
    start = time.process_time()
    parsed = from_web(html.encode())
    assert SENTENCE.format(7).strip() in parsed.text
    assert parsed.reading["text"] in ("main", "whole")
    assert time.process_time() - start < 30


@contextmanager
def no_callbacks_of_the_collector() -> Iterator[None]:
    """Those of Hypothesis: a signal may come in one of them, and what it raises is then dropped,
    with a warning."""
    callbacks = [*gc.callbacks]
    gc.callbacks.clear()
    try:
        yield
    finally:
        gc.callbacks.extend(callbacks)


def test_a_page_that_takes_too_long_is_read_whole_in_the_time_that_is_left() -> None:
    rows = "".join(f"<div class='c{n} comment' id='x{n}'>gate {n}</div>" for n in range(30_000))
    limits = ParseLimits(seconds=5.0)
    start = time.process_time()
    with no_callbacks_of_the_collector():
        parsed = from_web(f"<html><body>{rows}</body></html>".encode(), limits=limits)
    assert parsed.reading["why"] == "extracting the main text took too long"
    assert "gate 29999" in parsed.text
    assert time.process_time() - start < 15


def test_time_that_is_up_is_told_again_where_it_was_not_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[BaseException] = []

    def deaf(*_: object, **__: object) -> None:
        """As a destructor is, whose errors Python drops."""
        while len(heard) < 2:
            try:
                while True:
                    time.sleep(0.01)
            except web_page.OutOfTime as error:
                heard.append(error)
        raise heard[-1]

    monkeypatch.setattr("trafilatura.bare_extraction", deaf)
    parsed = from_web(page(), limits=ParseLimits(seconds=1.0))
    assert parsed.reading["why"] == "extracting the main text took too long"


@pytest.mark.parametrize("error", [RecursionError(), MemoryError(), ValueError("canary")], ids=repr)
def test_whatever_fails_in_the_library_the_page_is_read_whole(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("trafilatura.bare_extraction", fail)
    parsed = from_web(page())
    assert ENGLISH.around[0] in parsed.text
    assert parsed.reading["text"] == "whole"
    assert "canary" not in parsed.reading["why"], "what a library says may quote the page"


def test_a_page_without_text_is_empty() -> None:
    with pytest.raises(ParserError) as caught:
        from_web(
            b"<html><head><title>Gate</title></head><body><img src=a><script>1</script></body>"
        )
    assert caught.value.reason == "empty"


TAGS = (
    "<p> </p> <div> <table> <tr> <td> <ul> <li> </ul> <h1> </h1> <!-- <pre> <code> <br> <article>"
)
ODDS = st.sampled_from([*TAGS.split(), "</", "<a href='", "&amp;", "\x0c", "水門", "word. "])


@given(st.lists(ODDS, max_size=60))
def test_any_heap_of_tags_is_read_or_empty(heap: list[str]) -> None:
    data = ("<html><body>" + "".join(heap) + PROSE).encode()
    with suppress(ParserError):  # a comment that is never closed leaves nothing to read
        parsed = from_web(data)
        assert all(parsed.text.startswith(one.title, one.start) for one in parsed.headings)


def test_the_rule_for_too_little_is_what_the_docs_say() -> None:
    assert (web_page.LEAST, web_page.LEAST_SHARE, web_page.LONG) == (200, 0.05, 1000)
    assert web_page.LEAST_SHARE_OF_FILE == 0.25


def test_a_file_keeps_its_headings() -> None:
    report = (ROOT / "examples" / "documents" / "incident.html").read_bytes()
    parsed = read(report, LIMITS)
    for heading in ("What happened", "Why nobody noticed", "What changes"):
        assert heading in parsed.text
    assert parsed.reading["why"] == "the main text would have none of its headings"
