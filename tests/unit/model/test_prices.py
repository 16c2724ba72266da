"""Prices: of a model or a lane, from a day on; and none is not nothing."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.config import load
from penstock.errors import ConfigError
from penstock.model.prices import PriceConfig, PriceTable, price_at

OLD, NEW = PriceConfig(input=3, output=15), PriceConfig(input=2, output=10)
LANE = PriceConfig(tokens=0.1)
PRICES: PriceTable = {
    "large": {"2025-01-01": OLD, "2025-07-01": NEW},
    "embedder": {"2025-01-01": LANE},
}


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("model", "lane", "day", "price"),
    [
        ("large", "embedder", "2025-01-01", OLD),
        ("large", "", "2025-06-30T23:59:59", OLD),
        ("large", "", "2025-07-01", NEW),
        ("large-2024-11-20", "", "2026-01-01", NEW),
        ("large-20241120", "", "2026-01-01", NEW),
        ("large-mini", "", "2026-01-01", None),
        ("large", "", "2024-12-31", None),
        ("unheard", "embedder", "2026-01-01", LANE),
        ("", "llm", "2026-01-01", None),
    ],
)
def test_price_is_that_of_the_day(
    model: str, lane: str, day: str, price: PriceConfig | None
) -> None:
    assert price_at(PRICES, model, lane, at(day)) == price


def test_cost_is_in_whole_millionths_and_unknown_without_a_price() -> None:
    assert NEW.cost(11, 10, 1) == 30
    assert LANE.cost(7, 0, 0) == 1  # 0.7
    assert LANE.cost(4, 4, 0) == 0
    assert NEW.cost(11, 0, 0) is None, "it is not told which are which"
    assert PriceConfig(input=1).cost(5, 5, 0) == 5
    assert PriceConfig(input=1).cost(5, 4, 1) is None


def test_prices_are_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "penstock.yaml"
    file.write_text("prices:\n  gpt-4.1:\n    2025-04-14: {input: 2, output: 8}\n")
    loaded = load(file=file, environment={})
    assert loaded.engine.prices == loaded.prices
    assert loaded.prices == {"gpt-4.1": {"2025-04-14": PriceConfig(input=2, output=8)}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{large: {soon: {input: 1}}}", "'soon' is no day such as 2026-01-31"),
        ("{large: {2025-01-01: {}}}", "a price needs input, output or tokens"),
        ("{large: {2025-01-01: {input: -1}}}", "input must be a number from 0 up"),
        ("{large: {2025-01-01: {inptu: 1}}}", "inptu"),
        ("{large: 5}", "must be a mapping"),
    ],
)
def test_wrong_prices_are_refused_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "penstock.yaml"
    file.write_text(f"prices: {text}\n")
    with pytest.raises(ConfigError, match="line 1") as error:
        load(file=file, environment={})
    assert message in str(error.value)
