"""Names and titles of documents: masked, and cheap to mask whatever their length."""

from urllib.parse import quote

import pytest

from penstock.documents.document_names import TEXT_LIMIT, WINDOW, Names
from penstock.documents.mask import Masked, Masker

ADDRESS = "jane.doe@mail.example.com"
NAMES = Names(Masker())


class Counting(Masker):
    """Counts the characters it was given."""

    characters = 0

    def __call__(self, text: str) -> Masked:
        self.characters += len(text)
        return super().__call__(text)


@pytest.mark.parametrize("unit", ["ab@ab.com ", "a%40b.com ", "1+2+", "0", "가"])
def test_a_long_title_costs_no_more_than_a_short_one(unit: str) -> None:
    mask = Counting()
    Names(mask).text(unit * (2_000_000 // len(unit)))
    assert mask.characters <= 3 * WINDOW


def test_a_title_keeps_its_start() -> None:
    assert NAMES.text("word " * 100_000) == ("word " * TEXT_LIMIT)[:TEXT_LIMIT]
    assert NAMES.text(f"For {ADDRESS}, " + "word " * 100_000).startswith("For [EMAIL], word word")


@pytest.mark.parametrize("write", [str, quote], ids=["plain", "quoted"])
def test_what_the_cut_parts_in_two_is_not_kept(write: type[str]) -> None:
    """Long values before it, whose labels are short, bring the cut into what is kept."""
    value = write(ADDRESS)
    dense = f"{'x' * 60}@{'y' * 60}.example.com "
    for before in range(WINDOW - len(value) - 2, WINDOW + 2):
        filler = (dense * (before // len(dense) + 1))[: before - 1] + " "
        kept = NAMES.text(filler + value + " tail" * 1000)
        assert "jane" not in kept
        assert "doe" not in kept
        assert kept.startswith("[EMAIL] [EMAIL] ")


def test_a_title_of_nothing_but_addresses_keeps_some_of_them() -> None:
    kept = NAMES.text(f"{ADDRESS} " * 10_000)
    assert kept == ("[EMAIL] " * TEXT_LIMIT)[: len(kept)]
    assert len(kept) > TEXT_LIMIT // 2
