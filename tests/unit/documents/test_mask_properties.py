"""Values made up at random, in the forms people write, between the words people write."""

import string

from hypothesis import given
from hypothesis import strategies as st

from penstock.documents.mask import Masker, mask
from penstock.documents.pii import FINDERS
from penstock.documents.pii.fold import fold

AROUND = [
    ("", ""),
    ("連絡は", "まで。"),
    ("（", "）です"),
    ("번호는 ", "입니다."),
    ("저의", "로 주세요"),
    ("It is ", ", thanks."),
    ("<", ">"),
    ("「", "」と"),
    ("\n", "\n"),
]
around = st.sampled_from(AROUND)
FULL_WIDTH = {
    ord(sign): chr(ord(sign) + 0xFEE0) for sign in string.ascii_letters + string.digits + "-.@+():"
}
FORMULA = {ord(digit): chr(0x1D7CE + int(digit)) for digit in string.digits}
widths = st.sampled_from([{}, FULL_WIDTH, FORMULA])


def number(length: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=length, max_size=length)


def luhn(body: str) -> str:
    total = sum(
        int(digit) if index % 2 else sum(divmod(2 * int(digit), 10))
        for index, digit in enumerate(reversed(body))
    )
    return body + str(-total % 10)


def check_my_number(body: str) -> str:
    weights = (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
    rest = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True)) % 11
    return body + str(0 if rest <= 1 else 11 - rest)


def assert_masked(before: str, value: str, after: str, label: str) -> None:
    assert mask(before + value + after).text == before + label + after


@given(
    around,
    st.text(string.ascii_lowercase + string.digits + "äößéñøżćпж", min_size=1, max_size=20),
    st.text(string.ascii_lowercase + "äöß", min_size=1, max_size=20),
    st.sampled_from(["jp", "co.jp", "kr", "co.kr", "com", "example", "museum"]),
    widths,
)
def test_any_address_is_masked(
    words: tuple[str, str], local: str, host: str, top: str, width: dict[int, str]
) -> None:
    if local == "git":
        return
    assert_masked(words[0], f"{local}@{host}.{top}".translate(width), words[1], "[EMAIL]")


@given(
    around,
    st.sampled_from(["010", "011", "050", "070", "080", "090"]),
    number(4),
    number(4),
    st.sampled_from(["-", ".", " ", "", "–", "ー"]),
    widths,
)
def test_any_mobile_number_is_masked(
    words: tuple[str, str], head: str, middle: str, end: str, gap: str, width: dict[int, str]
) -> None:
    value = gap.join((head, middle, end)).translate(width)
    assert_masked(words[0], value, words[1], "[PHONE]")


@given(
    around,
    st.sampled_from(["03-{}-{}", "06-{}-{}", "02-{}-{}", "(03){}-{}", "03({}){}", "031-{}-{}"]),
    number(4),
    number(4),
    widths,
)
def test_any_landline_is_masked(
    words: tuple[str, str], form: str, middle: str, end: str, width: dict[int, str]
) -> None:
    assert_masked(words[0], form.format(middle, end).translate(width), words[1], "[PHONE]")


@given(
    around,
    st.dates(),
    st.integers(1, 8),
    number(6),
    st.sampled_from(["-", " - ", "－", "-\n"]),
)
def test_any_resident_number_is_masked(
    words: tuple[str, str], born: object, gender: int, rest: str, gap: str
) -> None:
    day = str(born).replace("-", "")[2:]
    if day.endswith("0229"):
        return
    assert_masked(words[0], f"{day}{gap}{gender}{rest}", words[1], "[RESIDENT_NUMBER]")


@given(
    around,
    st.integers(1, 899).filter(lambda area: area != 666),
    st.integers(1, 99),
    st.integers(1, 9999),
    st.sampled_from(["-", " - ", "－", "-\n"]),
)
def test_any_social_security_number_is_masked(
    words: tuple[str, str], area: int, group: int, serial: int, gap: str
) -> None:
    assert_masked(words[0], f"{area:03d}{gap}{group:02d}{gap}{serial:04d}", words[1], "[SSN]")


@given(
    st.tuples(st.sampled_from([0, 666, 900, 999]), st.integers(1, 99), st.integers(1, 9999))
    | st.tuples(st.integers(1, 899), st.just(0), st.integers(1, 9999))
    | st.tuples(st.integers(1, 899), st.integers(1, 99), st.just(0))
)
def test_number_that_is_never_given_out_is_no_social_security_number(
    parts: tuple[int, int, int],
) -> None:
    area, group, serial = parts
    text = f"The pump {area:03d}-{group:02d}-{serial:04d} is here."
    assert mask(text).text == text


@given(around, number(11), st.sampled_from(["-", "－"]), widths)
def test_any_grouped_my_number_is_masked(
    words: tuple[str, str], body: str, gap: str, width: dict[int, str]
) -> None:
    whole = check_my_number(body)
    value = gap.join((whole[:4], whole[4:8], whole[8:])).translate(width)
    masked = mask(words[0] + value + words[1])
    # 0120-123-4567... may also be read as a telephone number; it is gone either way.
    assert masked.text.count("[") == 1
    assert value not in masked.text


@given(
    around,
    st.sampled_from([("4", 16), ("52", 16), ("2300", 16), ("37", 15), ("3530", 16), ("6011", 16)]),
    st.data(),
    st.sampled_from(["-", " ", "", "  ", " - ", "-\n"]),
    widths,
)
def test_any_card_is_masked(
    words: tuple[str, str],
    kind: tuple[str, int],
    data: st.DataObject,
    gap: str,
    width: dict[int, str],
) -> None:
    prefix, length = kind
    whole = luhn(prefix + data.draw(number(length - 1 - len(prefix))))
    groups = (4, 6, 5) if length == 15 else (4, 4, 4, 4)
    parts, at = [], 0
    for size in groups:
        parts.append(whole[at : at + size])
        at += size
    assert_masked(words[0], gap.join(parts).translate(width), words[1], "[CARD]")


@given(
    around,
    st.sampled_from(["4", "52", "6011"]),
    st.data(),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", " \n", " \r\n"]),
    st.sampled_from(["", "  ", "\t"]),
)
def test_any_card_that_is_wrapped_is_masked(
    words: tuple[str, str],
    prefix: str,
    data: st.DataObject,
    at: int,
    named: bool,
    end: str,
    indent: str,
) -> None:
    whole = luhn(prefix + data.draw(number(15 - len(prefix))))
    groups = [whole[index : index + 4] for index in range(0, 16, 4)]
    value = " ".join(groups[:at]) + end + indent + " ".join(groups[at:])
    told = "card " if named or indent else ""  # what is indented may be a table
    assert_masked(words[0] + told, value, words[1], "[CARD]")


@given(around, st.sampled_from(["DE", "CZ", "AT"]), st.data(), st.booleans())
def test_any_iban_is_masked(
    words: tuple[str, str], country: str, data: st.DataObject, spaced: bool
) -> None:
    body = data.draw(number({"DE": 18, "CZ": 20, "AT": 16}[country]))
    as_digits = "".join(str(int(sign, 36)) for sign in body + country + "00")
    whole = f"{country}{98 - int(as_digits) % 97:02d}{body}"
    if spaced:
        whole = " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))
    assert_masked(words[0], whole, words[1], "[IBAN]")


@given(st.text(alphabet="0123456789-+.@: ()aZ[]あ가は０－\u200b\n", max_size=200))
def test_whatever_the_text_offsets_stay_true(text: str) -> None:
    masked = mask(text)

    rebuilt, done = [], 0
    for edit in masked.edits:
        assert done <= edit.start < edit.end <= len(text)
        rebuilt += [text[done : edit.start], masked.text[edit.masked_start : edit.masked_end]]
        assert masked.position(edit.end) == edit.masked_end
        done = edit.end
    assert "".join([*rebuilt, text[done:]]) == masked.text
    assert sum(masked.counts.values()) == len(masked.edits)
    positions = [masked.position(offset) for offset in range(len(text) + 1)]
    assert positions == sorted(positions)
    assert positions[-1] == len(masked.text)


@given(st.text(max_size=100))
def test_folding_keeps_offsets(text: str) -> None:
    folded = fold(text)

    assert len(folded.text) + len(folded.removed) == len(text)
    for offset, sign in enumerate(folded.text):
        original = text[folded.original(offset)]
        assert fold(original).text == sign or sign == "-"


@given(st.text(alphabet=string.printable + "あ가０", max_size=100))
def test_finders_stay_inside_the_text(text: str) -> None:
    folded = fold(text).text
    for find in FINDERS:
        for start, end, _ in find(folded):
            assert 0 <= start < end <= len(folded)


def test_a_masker_without_edits_returns_the_text_itself() -> None:
    text = "nothing to see"

    assert Masker()(text).text == text
