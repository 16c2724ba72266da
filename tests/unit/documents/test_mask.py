"""Masking: what goes, what stays, and where everything is afterwards."""

import math
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.documents.mask import LABELS, Masked, Masker, mask
from penstock.documents.parsed import Heading, PageSpan, Parsed
from penstock.documents.pii import Kind, PiiSpan
from penstock.errors import ConfigError
from tests.support.pii import LANGUAGES, Figures, figures, labelled


@pytest.fixture(scope="module")
def found() -> Figures:
    return figures()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", [kind.value for kind in Kind])
def test_every_kind_is_caught_in_every_language(found: Figures, kind: str, language: str) -> None:
    assert found.all[kind, language] >= 3
    missed = [line for line in found.missed if line.startswith(kind)]
    assert found.found[kind, language] == found.all[kind, language], missed


def test_false_alarms_on_hard_negatives_are_rare(found: Figures) -> None:
    assert found.negative_tokens > 100_000
    assert found.alarms_per_10_000_tokens <= 1, found.alarms


def test_no_value_is_left_in_the_masked_text() -> None:
    for one in labelled():
        masked = mask(one.text)
        for start, end in one.values:
            assert one.text[start:end] not in masked.text


def test_a_masked_text_has_nothing_left_to_mask() -> None:
    for one in labelled():
        masked = mask(one.text)
        assert mask(masked.text) == Masked(masked.text, {})


def test_numbers_touch_particles_and_punctuation() -> None:
    assert mask("전화010-1234-5678로").text == "전화[PHONE]로"
    assert mask("901231-1234567입니다").text == "[RESIDENT_NUMBER]입니다"
    assert mask("連絡先:taro.yamada@example.jpまで").text == "連絡先:[EMAIL]まで"
    assert mask("カード番号は5500-0000-0000-0004です").text == "カード番号は[CARD]です"


def test_a_card_is_not_taken_for_an_account_and_leaves_nothing() -> None:
    assert mask("계좌 4111-1111-1111-1111 입금").text == "계좌 [CARD] 입금"


def test_numbers_side_by_side_are_counted_one_by_one() -> None:
    masked = mask("03-1234-5678/090-1234-5678、06-1234-5678,010-1234-5678")

    assert masked.text == "[PHONE]/[PHONE]、[PHONE],[PHONE]"
    assert masked.counts == {"phone": 4}


@pytest.mark.parametrize("number", ["911-234-5678", "299-555-1234", "555-911-1234", "370-555-1234"])
def test_number_that_no_telephone_has_is_masked_only_where_it_is_called_one(number: str) -> None:
    assert mask(f"Bin 4 holds {number} and nuts.").text == f"Bin 4 holds {number} and nuts."
    assert mask(f"Phone: {number}").text == "Phone: [PHONE]"
    assert mask("Bin 4 holds 415-555-0132.").text == "Bin 4 holds [PHONE]."


def test_characters_nobody_sees_hide_nothing() -> None:
    masked = mask("연락\u200b처 0\u200b10-12\u00ad34-56\ufeff78\u200b로")

    assert masked.text == "연락\u200b처 [PHONE]\u200b로"


DEFAULT_IGNORABLE = (
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""As Unicode lists them in DerivedCoreProperties.txt."""


def test_no_character_that_unicode_lets_programs_ignore_hides_anything() -> None:
    for first, last in DEFAULT_IGNORABLE:
        for code in range(first, last + 1):
            sign = chr(code)
            text = f"010-12{sign}34-5678, jane{sign}.doe@exam{sign}ple.com"
            assert mask(text).text == "[PHONE], [EMAIL]", f"{code:x}"
    assert mask("0\ufe0f\u20e31\ufe0f\u20e30\ufe0f\u20e3-1234-5678").text == "[PHONE]"


def test_line_ends_inside_are_masked_with_the_number_and_offsets_stay_true() -> None:
    text = "연\u200b락 010-1234-\r\n  5678 또는 a\u00adb@\nexample.com 끝"
    masked = mask(text)

    assert masked.text == "연\u200b락 [PHONE] 또는 [EMAIL] 끝"
    assert [text[edit.start : edit.end] for edit in masked.edits] == [
        "010-1234-\r\n  5678",
        "a\u00adb@\nexample.com",
    ]


@pytest.mark.parametrize(
    "table",
    [
        "4111 1111\n1111 1111\n1234 5678\n9012 3456\n",
        "1234 5678\n4111 1111\n1111 1111\n",
        "1234 4111 1111\n1111 1111 5678",
        "a,4111 1111\n1111 1111,b",
        "010\n1234\n5678\n",
        "  4111 1111\n  1111 1111\n",
        "4111 1111 \r\n1111 1111 \r\n1234 5678 \r\n9012 3456 \r\n",
    ],
)
def test_rows_of_a_table_are_not_read_as_one_number(table: str) -> None:
    assert mask(table).text == table


def test_a_list_of_cards_is_masked_and_a_table_is_not() -> None:
    cards = "4792 8775 7447 6219\n4682 7521 7488 8514\n4590 4584 7445 2909\n"
    table = "4792 8775 7447 6219\n4682 7521 7488 8515\n4590 4584 7445 2901\n"

    assert mask(cards).text == "[CARD]\n" * 3
    assert mask(table).text == table


COLUMNS = {
    "csv": ",",
    "semicolons": ";",
    "tabs": "\t",
    "workbook": " | ",
}


@pytest.mark.parametrize("gap", COLUMNS.values(), ids=COLUMNS.keys())
@pytest.mark.parametrize(
    "heads",
    [
        ("name", "passport_no", "account_number", "phone", "my_number", "score"),
        ("氏名", "旅券番号", "口座番号", "電話番号", "マイナンバー", "点数"),
        ("이름", "여권번호", "계좌번호", "전화번호", "개인번호", "점수"),
    ],
)
def test_the_head_of_a_column_says_what_is_below_it(gap: str, heads: tuple[str, ...]) -> None:
    row = gap.join(("Kim", "M12345678", '"1002123456"', "0312345678", "945807302153", "12345678"))
    masked = mask("\n".join([gap.join(heads), *[row] * 200]))

    shown = gap.join(
        ("Kim", "[PASSPORT]", '"[BANK_ACCOUNT]"', "[PHONE]", "[MY_NUMBER]", "12345678")
    )
    assert masked.text == "\n".join([gap.join(heads), *[shown] * 200])


def test_a_cell_with_the_delimiter_in_quotes_keeps_its_column() -> None:
    text = 'name,passport\n"Doe, Jane",123456789\n' + '"Roe, John",987654321\n' * 20

    assert mask(text).text.count("[PASSPORT]") == 21
    assert mask(text).text.count('"Roe, John",[PASSPORT]') == 20


def test_this_machine_and_any_machine_are_nobodys_address() -> None:
    text = "127.0.0.1 ::1 0.0.0.0 ::ffff:127.0.0.1"

    assert mask(text).text == text


def test_kinds_and_counts_are_reported_but_no_values() -> None:
    masked = mask("a@example.jp, b@example.jp, 010-1234-5678")

    assert masked.counts == {"email": 2, "phone": 1}
    assert "a@example" not in repr(masked)


def test_positions_follow_the_text() -> None:
    text = "page one 010-1234-5678 ends.\fpage two a@example.jp\fpage three"
    masked = mask(text)
    starts = [0, text.index("page two"), text.index("page three")]

    for start, words in zip(starts, ("page one", "page two", "page three"), strict=True):
        assert masked.text[masked.position(start) :].startswith(words)
    assert masked.position(len(text)) == len(masked.text)
    assert masked.position(text.index("1234")) == masked.text.index("[PHONE]")


def test_all_that_is_derived_from_a_document_is_masked() -> None:
    text = "Call 010-1234-5678\n\nfirst page\n\nAsk a@example.jp\n\nsecond page"
    second = text.index("Ask")
    parsed = Parsed(
        text,
        "For a@example.jp",
        "text/plain",
        (PageSpan(1, 0, second), PageSpan(2, second, len(text))),
        (Heading(1, 0, "Call 010-1234-5678"), Heading(1, second, "Ask a@example.jp")),
        {"author": "b@example.jp"},
    )

    document, masked = mask.document(parsed)

    assert document.text == masked.text
    assert document.title == "For [EMAIL]"
    assert document.metadata == {"author": "[EMAIL]"}
    assert [heading.title for heading in document.headings] == ["Call [PHONE]", "Ask [EMAIL]"]
    for heading in document.headings:
        assert document.text.startswith(heading.title, heading.start)
    pages = [document.text[page.start : page.end] for page in document.pages]
    assert pages == ["Call [PHONE]\n\nfirst page\n\n", "Ask [EMAIL]\n\nsecond page"]


def test_labels_are_where_they_are_said_to_be() -> None:
    masked = mask("a@example.jp と 010-1234-5678 と 203.0.113.9")

    texts = [masked.text[start:end] for start, end in masked.labels]
    assert texts == ["[EMAIL]", "[PHONE]", "[IP_ADDRESS]"]


def test_labels_can_be_changed() -> None:
    masker = Masker(labels={"email": "<이메일>"})

    assert masker("a@example.jp 010-1234-5678").text == "<이메일> [PHONE]"


@pytest.mark.parametrize("label", ["", "card 4111", "a@b", "x" * 65])
def test_a_label_that_could_be_masked_again_is_refused(label: str) -> None:
    with pytest.raises(ConfigError, match="label"):
        Masker(labels={"email": label})


def test_a_finder_of_ones_own_finds_names_in_the_text_as_it_was() -> None:
    def names(text: str) -> list[PiiSpan]:
        return [PiiSpan(text.index("Ｙａｍａｄａ"), text.index("Ｙａｍａｄａ") + 6, "name")]

    masked = Masker(finders=[names])("Mr Ｙａｍａｄａ, a@example.jp")

    assert masked.text == "Mr [NAME], [EMAIL]"
    assert masked.counts == {"name": 1, "email": 1}


def test_claims_that_overlap_leave_no_rest() -> None:
    def greedy(text: str) -> list[PiiSpan]:
        return [PiiSpan(0, 8, "name")]

    masked = Masker(finders=[greedy])("Kim a.b@example.jp")

    assert masked.text == "[EMAIL]"


def test_a_finder_that_points_outside_the_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="outside"):
        Masker(finders=[lambda text: [PiiSpan(0, len(text) + 1, "name")]])("Kim")


HOSTILE = {
    "zeros": "0",
    "zeros apart": "0 ",
    "hyphens": "0-",
    "dots": "1.",
    "at signs": "@",
    "addresses": "a@",
    "hosts": "a@a.",
    "letters": "a",
    "colons": ":",
    "hexadecimal": "a:",
    "plus": "+1",
    "plus apart": "+1 2-",
    "parentheses": "(0",
    "abroad": "00 82-",
    "groups": "1234 ",
    "cards": "4111-1111-1111-111",
    "ibans": "DE44",
    "passports": "passport ",
    "labels": "계좌번호 ",
    "accounts": "은행 1-",
    "full width": "０－",
    "long vowels": "0ー",
    "invisible": "0\u200b",
    "phones": "010-1234-5678 ",
    "dates": "901231-",
    "columns": "phone,",
    "heads": "phone,bank\n",
    "rows": "1,2\n",
    "quotes": '",',
    "hyphens at line ends": "0-\n",
    "at signs at line ends": "a@\n",
    "dots at line ends": "@a.\ncom ",
    "a column": "1234\n",
    "wrapped": "x 1234 1234\n1234 1234 y\n",
    "umlauts": "ü@",
    "umlauts in addresses": "ü@ü.",
    "slashes": "0171/",
    "slashed": "0171/12 34 ",
    "pairs": "06.12.",
    "two blanks": "0  ",
    "versions": "version 1.2.3.4, ",
    "versions listed": "1.2.3.4, ",
    "sliced": "x[2000::",
    "parts": "part 234-567-8901, ",
    "ids": "id: 4111111111111111 ",
    "sums": "+ 258 ",
    "logins": "ssh://a@a.com",
    "variation selectors": "0\ufe0f",
    "digits of formulas": "\U0001d7ce-",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_takes_time_in_proportion(unit: str) -> None:
    """A pattern that looks again and again would take 64 times as long, or years."""
    assert_linear(unit)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text("01 -+.@:/()\n,aDEü가\ufe0f", min_size=1, max_size=12))
def test_whatever_is_repeated_takes_time_in_proportion(unit: str) -> None:
    assert_linear(unit)


def assert_linear(unit: str) -> None:
    small, large = (seconds(unit * (size // len(unit))) for size in (5_000, 40_000))
    # Eight times as much. On a busy machine some of it may take three times as long.
    assert large < 24 * max(small, 0.004), f"{small:.3f} s, then {large:.3f} s"


def seconds(text: str) -> float:
    best = math.inf
    for _ in range(2):
        started = time.process_time()
        mask(text)
        best = min(best, time.process_time() - started)
    return best


def test_the_default_labels_name_every_kind() -> None:
    assert set(LABELS) == {kind.value for kind in Kind}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("jane@example.com0", "[EMAIL]0"),
        ("see taro@example.co.jp12 for it", "see [EMAIL]12 for it"),
        ("pkg@1.0.rc1", "pkg@1.0.rc1"),
    ],
)
def test_digit_right_behind_an_address_does_not_save_it(text: str, masked: str) -> None:
    assert mask(text).text == masked
