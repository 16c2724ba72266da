"""Chunks: bounded, overlapping as asked, cut where a reader would, and nothing lost."""

import random
import re
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.documents.chunk import Chunk, ChunkSettings, chunk
from penstock.documents.mask import mask
from penstock.documents.parsed import Heading, PageSpan
from penstock.documents.tokens import count_tokens, is_apart
from penstock.errors import ConfigError

Count = Callable[[str], int]
SMALL = ChunkSettings(size=50, overlap=12, slack=6)

ENGLISH = "The pump started at dawn, and nobody was there. Water rose, slowly; then it fell again. "
JAPANESE = "朝になると水門が開き、水は静かに流れ始めた。「誰もいない」と彼は言った。鳥が鳴いた！ "
KOREAN = (
    "새벽에 수문이 열리고 물이 천천히 흐르기 시작했다. 아무도 없다고 그는 말했다! 새가 울었다. "
)
THAI = "ประตูน้ำเปิดในตอนเช้าและน้ำค่อยๆไหลออกไปอย่างช้าๆ "


def assert_sound(
    text: str, chunks: list[Chunk], settings: ChunkSettings, count: Count = count_tokens
) -> None:
    """What every list of chunks promises."""
    always = count("")
    assert "".join(text[each.fresh : each.end] for each in chunks) == text
    for each in chunks:
        assert each.text == text[each.start : each.end]
        assert each.tokens == count(each.text) - always
        assert each.tokens <= settings.size
        assert each.start <= each.fresh < each.end
    for before, after in list(pairwise(chunks))[:-1]:
        shared = count(text[after.start : before.end]) - always
        assert abs(shared - settings.overlap) <= settings.slack, (before.end, shared)


TEXTS = {
    "english": ENGLISH * 200,
    "japanese": JAPANESE * 200,
    "korean": KOREAN * 200,
    "thai": THAI * 300,
    "no spaces at all": "水" * 20_000,
    "monster sentence": "and so on, " * 5_000,
    "table": "\n".join(f"| {n} | {n * n} | {n**3} |" for n in range(1_000)),
    "url": "https://example.org/" + "a1b2%C3%A9/" * 1_000,
    "one word": "a" * 50_000,
    "dots": "." * 20_000,
    "emoji": "👨‍👩‍👧‍👦 🇯🇵🇰🇷 👍🏽 " * 1_000,
    "combining marks": "e\u0301\u0323 " * 5_000,
    "one character of marks": "e" + "\u0301" * 5_000,
    "blank lines": "a\n\n" + "\n" * 20_000 + "b",
    "blanks": "a" + " " * 50_000 + "b",
    "carriage returns": "line\r\n" * 5_000,
    "lone surrogates": "a\ud800b \udfff" * 3_000,
    "mixed": (ENGLISH + JAPANESE + KOREAN + THAI + "\n\n") * 50,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_limits_hold_whatever_the_text(text: str) -> None:
    assert_sound(text, chunk(text), ChunkSettings())


def count_characters(text: str) -> int:
    return len(text)


def count_words(text: str) -> int:
    """Sees no token in blanks, and adds two to every text as models do."""
    return len(text.split()) + 2


def count_greedy(text: str) -> int:
    """Pairs of letters are one token, so the whole has fewer tokens than its parts."""
    return len(re.findall(r"\s?\S\S?", text)) + text.count("\n")


@pytest.mark.parametrize("count", [count_characters, count_words, count_greedy])
@pytest.mark.parametrize("name", ["english", "korean", "mixed", "table", "carriage returns"])
def test_the_tokenizer_given_is_the_one_that_counts(name: str, count: Count) -> None:
    assert_sound(TEXTS[name], chunk(TEXTS[name], count=count), ChunkSettings(), count)


def test_a_tokenizer_that_sees_nothing_in_blanks_still_gets_bounded_chunks() -> None:
    text = "a" + " " * 200_000 + "b"

    chunks = chunk(text, count=count_words)

    assert "".join(text[each.fresh : each.end] for each in chunks) == text
    assert max(len(each.text) for each in chunks) <= 16 * ChunkSettings().size


@given(
    st.lists(
        st.one_of(
            st.sampled_from([ENGLISH, JAPANESE, KOREAN, THAI, "\n\n", "# Title\n", "👍🏽", "\t"]),
            st.text(max_size=40),
        ),
        max_size=40,
    )
)
def test_any_text_comes_back_whole_and_within_limits(parts: list[str]) -> None:
    text = "".join(parts)

    chunks = chunk(text, SMALL)

    if text.strip():
        assert_sound(text, chunks, SMALL)
    else:
        assert chunks == []


@given(st.text(min_size=1, max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_a_part_has_no_more_tokens_than_the_whole(text: str, start: int, end: int) -> None:
    assert count_tokens(text[start:end]) <= count_tokens(text)


@given(
    st.text(
        st.sampled_from("ab1 \t\n.\u3002_\u00e9\u0436\u6c34\ubb3c\u0e01\u3000\U0001f44d"),
        min_size=2,
    ),
    st.data(),
)
def test_tokens_of_two_parts_add_up_where_they_are_said_to(text: str, data: st.DataObject) -> None:
    apart = [at for at in range(1, len(text)) if is_apart(text, at)]
    assume(apart)
    at = data.draw(st.sampled_from(apart))
    assert count_tokens(text) == count_tokens(text[:at]) + count_tokens(text[at:])


def test_words_and_sentences_are_told_apart_so_that_few_chunks_are_counted_again() -> None:
    for text in (ENGLISH, JAPANESE, KOREAN):
        assert is_apart(text + text, len(text))
    assert not is_apart("understanding", 5)


def test_blank_text_has_no_chunks() -> None:
    assert chunk("") == []
    assert chunk(" \n\t\u3000") == []


def test_short_text_is_one_chunk() -> None:
    (only,) = chunk("こんにちは。")

    assert (only.start, only.fresh, only.end, only.tokens) == (0, 0, 6, 6)


@pytest.mark.parametrize("text", [ENGLISH * 200, JAPANESE * 200, KOREAN * 200])
def test_chunks_end_and_begin_with_sentences(text: str) -> None:
    chunks = chunk(text)

    assert all(each.text.rstrip()[-1] in ".!。！" for each in chunks)
    begins = ("The ", "Water ", "朝", "「", "鳥", "새벽", "아무", "새가")
    assert all(each.text.startswith(begins) for each in chunks)


def test_a_paragraph_is_a_better_end_than_a_sentence() -> None:
    text = (ENGLISH * 8 + "\n\n") * 20

    chunks = chunk(text)

    assert all(each.text.endswith("\n\n") for each in chunks[:-1])


def test_a_chunk_ends_before_a_heading_and_knows_its_section() -> None:
    sections = [f"Part {n}\n{ENGLISH * 15}" for n in range(8)]
    text = "".join(sections)
    starts = [text.index(f"Part {n}\n") for n in range(8)]
    headings = [Heading(1, 0, "Book")] + [
        Heading(2, start, f"Part {n}") for n, start in enumerate(starts)
    ]

    chunks = chunk(text, headings=headings)

    assert [each.fresh for each in chunks] == starts
    assert [each.section for each in chunks] == [("Book", f"Part {n}") for n in range(8)]


def test_a_chunk_knows_its_pages() -> None:
    page = ENGLISH * 20
    pages = [PageSpan(n + 1, n * len(page), (n + 1) * len(page)) for n in range(5)]

    chunks = chunk(page * 5, pages=pages)

    for each in chunks:
        assert each.pages is not None
        first, last = (pages[number - 1] for number in each.pages)
        later = pages[first.number : last.number]
        assert each.page_starts == tuple(page.start for page in later)
        assert first.start <= each.start < first.end
        assert last.start < each.end <= last.end


def test_a_label_is_never_cut() -> None:
    rng = random.Random(7)
    words = ["010-1234-5678", "a@example.jp", "901231-1234567", "水", "word", "、", "。", " ", "\n"]
    masked = mask("連絡" + " ".join(rng.choice(words) for _ in range(4_000)))
    for size in (30, 50, 100):
        settings = ChunkSettings(size=size, overlap=8, slack=5)
        chunks = chunk(masked.text, settings, keep=masked.labels)
        edges = {each.start for each in chunks} | {each.end for each in chunks}
        assert len(chunks) > 90
        for start, end in masked.labels:
            assert not any(start < edge < end for edge in edges)


def test_characters_made_of_several_are_not_cut() -> None:
    text = "👨‍👩‍👧‍👦" * 500 + "🇯🇵" * 500 + "각".encode().decode() * 500 + "ที่" * 500

    for each in chunk(text, SMALL)[1:]:
        assert text[each.start] not in "\u200d\ufe0f\u0e35\u0e48"
        assert text[each.start - 1] != "\u200d"


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="overlap"):
        ChunkSettings(size=200, overlap=128)
    with pytest.raises(ConfigError, match="slack"):
        ChunkSettings(slack=0)


def test_cost_is_linear_in_the_text() -> None:
    """Counted in characters given to the tokenizer, which do not depend on the machine."""

    def read(text: str) -> int:
        total = 0

        def counting(part: str) -> int:
            nonlocal total
            total += len(part)
            return count_tokens(part)

        chunk(text, count=counting)
        return total

    for name, text in TEXTS.items():
        once = read(text)
        assert read(text * 4) <= 5 * once + 50_000, name
        assert once <= 25 * len(text) + 50_000, name


def test_a_megabyte_is_chunked_in_seconds() -> None:
    text = TEXTS["mixed"] * (1_000_000 // len(TEXTS["mixed"]))
    started = time.process_time()

    chunk(text)

    assert time.process_time() - started < 20
