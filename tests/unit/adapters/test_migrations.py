"""Migrations are applied in the order of their numbers, each number once."""

from pathlib import Path

import pytest

import penstock

ADAPTERS = Path(penstock.__file__).parent / "adapters"


@pytest.mark.parametrize("folder", ["sqlite", "postgres", "postgres/documents"])
def test_numbers_of_migrations_follow_each_other(folder: str) -> None:
    steps = sorted(path.name for path in (ADAPTERS / folder / "migrations").glob("*.sql"))
    assert [int(name[:4]) for name in steps] == list(range(1, len(steps) + 1)), steps
