"""The labelled set of personal data, hard negatives, and the figures they give.

tests/data/pii/positive.tsv  language, kind, text with each value between ⟦ and ⟧; a text may go on
                             over several lines. Every value is invented
tests/data/pii/negative.txt  what looks like personal data and is not, line by line
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.documents.mask import LABELS, mask
from penstock.documents.tokens import count_tokens

DATA = Path(__file__).parents[1] / "data" / "pii"
LANGUAGES = ("en", "ja", "ko")


@dataclass
class Labelled:
    language: str
    kind: str
    text: str
    values: list[tuple[int, int]] = field(default_factory=list)


def labelled() -> Iterator[Labelled]:
    content = (DATA / "positive.tsv").read_text(encoding="utf-8").rstrip("\n")
    for row in re.split(r"\n(?=(?:en|ja|ko)\t)", content):
        language, kind, marked = row.split("\t", 2)
        one = Labelled(language, kind, "")
        for index, piece in enumerate(re.split("[⟦⟧]", marked)):
            if index % 2:
                one.values.append((len(one.text), len(one.text) + len(piece)))
            one.text += piece
        yield one


def handwritten_negatives() -> list[str]:
    """Each line, and all of them together."""
    text = (DATA / "negative.txt").read_text(encoding="utf-8")
    return [*text.splitlines(), text]


def generated_negatives(seed: int = 1, rows: int = 300) -> dict[str, str]:
    """Text full of numbers that belong to nobody, by what it is."""
    rng = random.Random(seed)
    number = rng.randrange

    def table(*cells: str) -> str:
        return "\n".join(
            " ".join(cell.format(number(1000, 10000)) for cell in cells) for _ in range(rows)
        )

    def many(make: Callable[[], str], of: int = 8) -> str:
        return "\n".join(" ".join(make() for _ in range(of)) for _ in range(rows))

    def hexadecimal(digits: int) -> str:
        return f"{rng.getrandbits(4 * digits):0{digits}x}"

    return {
        "three columns": table("{}", "{}", "{}"),
        "four columns": table("{}", "{}", "{}", "{}"),
        "labelled columns": table("Total", "{}", "{}", "{}"),
        "padded columns": many(lambda: f"{number(10000):04d}", 6),
        "mixed columns": many(lambda: str(number(10 ** number(1, 8)))),
        "csv": many(lambda: ",".join(str(number(10 ** number(1, 8))) for _ in range(6)), 1),
        "decimals": many(lambda: f"{rng.uniform(-10, 10):+.{number(1, 17)}f}"),
        "12 digits": many(lambda: str(number(10**11, 10**12))),
        "13 digits": many(lambda: str(number(10**12, 10**13))),
        "16 digits": many(lambda: str(number(10**15, 10**16))),
        "milliseconds": many(lambda: str(number(1_500_000_000_000, 1_790_000_000_000))),
        "hashes": many(lambda: hexadecimal(rng.choice((8, 32, 40, 64))), 4),
        "uuids": many(lambda: "-".join(hexadecimal(n) for n in (8, 4, 4, 4, 12)), 4),
        "versions": many(lambda: ".".join(str(number(30)) for _ in range(number(2, 5)))),
        "isbn 13": many(
            lambda: f"978-{number(10)}-{number(100, 999)}-{number(10**4, 10**5)}-{number(10)}"
        ),
        "isbn 10": many(
            lambda: f"{number(10)}-{number(10, 99)}-{number(10**5, 10**6)}-{number(10)}"
        ),
        "dates": many(
            lambda: (
                f"{number(1990, 2030)}-{number(1, 13):02d}-{number(1, 29):02d}"
                f" {number(1, 29):02d}.{number(1, 13):02d}.{number(1990, 2030)}"
            )
        ),
        "dois": many(
            lambda: (
                f"10.{number(1000, 99999)}/s{number(10**4, 10**5)}-{number(100, 1000)}"
                f"-{number(10**4, 10**5)}-{number(10)}"
            )
        ),
        "arxiv": many(lambda: f"arXiv:{number(7, 26):02d}{number(1, 13):02d}.{number(10**5):05d}"),
        "two columns": table("{}", "{}"),
        "a column": table("{}"),
        "ids": many(lambda: f"id: {number(10**15, 10**16)}", 1),
        "times": many(lambda: f"at {number(1_500_000_000_000, 1_790_000_000_000)} ms", 1),
        "sums": many(lambda: f"{number(100)}*x + {number(10**9, 10**11)}", 4),
        "slices": many(lambda: f"x[{number(1000, 10000)}::{number(1, 9)}]"),
        "named versions": many(
            lambda: f"version {'.'.join(str(number(256)) for _ in range(4))} is out", 1
        ),
        "updates": many(
            lambda: f"updated to {'.'.join(str(number(60)) for _ in range(4))} from the server", 1
        ),
        "named parts": many(
            lambda: f"part no. {number(200, 999)}-{number(200, 999)}-{number(1000, 9999)}", 1
        ),
        "never ssn": many(
            lambda: (
                f"{rng.choice((0, 666, number(900, 1000))):03d}-{number(100):02d}"
                f"-{number(10000):04d}"
            ),
            1,
        ),
        "parts of nine": many(
            lambda: f"part no. {number(900):03d}-{number(100):02d}-{number(10000):04d}", 1
        ),
        "9 digits": many(lambda: f"{number(10**9):09d}"),
        "products": many(lambda: "".join(rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", k=16))),
        "parts": many(lambda: f"{number(100):02d}-{number(1000):03d}-{number(10000):04d}"),
        "code": many(
            lambda: f"x[{number(100)}] = f{number(64)}(0x{hexadecimal(8)}, {number(10**9)});", 3
        ),
    }


@dataclass
class Figures:
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and language: values masked whole, as what they are, and nothing beside them."""
    all: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    negative_tokens: int = 0

    @property
    def alarms_per_10_000_tokens(self) -> float:
        return 10_000 * len(self.alarms) / self.negative_tokens


def figures() -> Figures:
    result = Figures()
    for one in labelled():
        masked = mask(one.text)
        got = {
            (edit.start, edit.end, masked.text[edit.masked_start : edit.masked_end])
            for edit in masked.edits
        }
        for start, end in one.values:
            result.all[one.kind, one.language] += 1
            if (start, end, LABELS[one.kind]) in got:
                result.found[one.kind, one.language] += 1
            else:
                result.missed.append(f"{one.kind}: {one.text[start:end]} -> {masked.text}")
        # What is masked beside the values is an alarm too.
        result.alarms += [
            f"{label}: {one.text[start:end]}"
            for start, end, label in got
            if (start, end) not in one.values
        ]
    for name, text in [("", line) for line in handwritten_negatives()] + list(
        generated_negatives().items()
    ):
        masked = mask(text)
        result.negative_tokens += count_tokens(text)
        result.alarms += [
            f"{name} {masked.text[edit.masked_start : edit.masked_end]}: "
            f"{text[edit.start : edit.end]}"
            for edit in masked.edits
        ]
    return result
