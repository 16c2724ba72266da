"""Time is linear in the size of a document, whatever it is made of, or it is refused beforehand."""

import gc
import sys
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.documents.parse.draft import Draft
from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.read import read
from penstock.errors import ParserError
from penstock.research.merge import folded_title
from penstock.retrieval.terms import index_terms
from penstock.text.normalize import Form, normalized
from tests.support import hostile_documents as hostile
from tests.support.hostile_documents import HOSTILE

LIMITS = ParseLimits()
TIMES = 8
"""How much larger the second document is: the square of it is 64."""
MOST = 24
"""How much longer it may take, on a machine that has other things to do."""
NOTHING = 0.005
"""Seconds of the processor that are too few to be compared."""


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, the least of three tries."""
    tries = []
    gc.disable()
    try:
        for _ in range(3):
            begun = time.process_time()
            work()
            tries.append(time.process_time() - begun)
            if tries[-1] < NOTHING:
                break
    finally:
        gc.enable()
    return min(tries)


def check_linear(work: Callable[[int], Callable[[], object]], size: int) -> None:
    work(size)()  # what is made once is made
    small = seconds(work(size))
    large = seconds(work(TIMES * size))
    assert large < MOST * max(small, NOTHING), f"{small:.3f} s became {large:.3f} s"


@pytest.mark.parametrize("name", HOSTILE)
def test_larger_document_takes_no_more_than_its_share_of_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What finds main texts is bounded by a clock instead: see test_web_page.py.
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    make, size = HOSTILE[name]

    def work(n: int) -> Callable[[], object]:
        data = make(n)

        def reading() -> None:
            with suppress(ParserError):  # there may be no text in it
                read(data, LIMITS)

        return reading

    check_linear(work, size)


@pytest.mark.parametrize("of", [index_terms, folded_title])
def test_longer_text_takes_no_more_than_its_share_of_time(of: Callable[[str], object]) -> None:
    check_linear(lambda n: lambda: of("a" + "\u0301" * n + "\u0316" * n), 2_000)


def test_bookmarks_that_a_long_page_does_not_have_are_not_looked_for_in_all_of_it() -> None:
    def work(n: int) -> Callable[[], object]:
        draft = Draft(LIMITS)
        draft.page()
        draft.block("ab" * 1_000 * n)
        for _ in range(n):
            draft.mark(1, "ac", 0)
        return lambda: draft.finish("application/pdf")

    check_linear(work, 100)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (hostile.word(f'<x xmlns="u:{"a" * 2_000}"><y/></x>'), "a name of over 1000 characters"),
        (hostile.word(f'<x xmlns:q="u:{"a" * 2_000}" q:a=""/>'), "a name of over 1000 characters"),
        (hostile.nested(60), "over 50 parts that have parts"),
    ],
)
def test_what_would_take_too_long_is_refused_beforehand(data: bytes, message: str) -> None:
    with pytest.raises(ParserError, match=message) as caught:
        read(data, LIMITS)
    assert caught.value.reason == "bomb"


def test_tag_without_an_end_is_refused() -> None:
    """Not packed well, for that is refused as well."""
    noise = "".join(chr(97 + number * 7919 % 26) + str(number) for number in range(600_000))
    with pytest.raises(ParserError, match="a tag of over 2000000 bytes") as caught:
        read(hostile.word(f'<x a="{noise}"/>'), LIMITS)
    assert caught.value.reason == "bomb"


def test_long_header_is_read_up_to_a_whole_address() -> None:
    parsed = read(hostile.mail(to="mia@weir.example, " * 1_000), LIMITS)
    (shown,) = (line for line in parsed.text.split("\n") if line.startswith("To: "))
    addresses = shown.removeprefix("To: ").split(", ")
    assert len(addresses) > 200
    assert set(addresses) == {"mia@weir.example"}
    assert parsed.text.endswith("body")


def test_part_that_several_refer_to_is_read_once() -> None:
    for data in (hostile.workbook(sheets=hostile.SHEET * 3), hostile.slides(3), hostile.book(3)):
        text = read(data, LIMITS).text
        assert text.replace("\n", "") in ("a", "aa"), "a sheet's name, then what is in it"


MARKED = st.text(st.characters(categories=["L", "M", "N", "Zs"]), max_size=30)


@given(MARKED, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_ordinary_text_has_the_form_that_unicode_says(text: str, form: Form) -> None:
    assert normalized(form, text) == unicodedata.normalize(form, text)


def test_of_many_marks_thirty_stand_in_a_row() -> None:
    marks = "\u0316\u0301" * 40
    shown = normalized("NFC", f"x{marks}y")
    assert shown.replace("\u034f", "").count("\u0301") == 40
    assert max(map(len, shown.split("\u034f"))) <= 32
    assert normalized("NFC", shown) == shown
