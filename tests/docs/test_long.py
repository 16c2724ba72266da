"""What `make test` leaves to `make chaos` is named in one place, and exists."""

import re
from pathlib import Path

from tests.conftest import long_patterns

ROOT = Path(__file__).parents[2]


def test_every_pattern_names_tests_that_exist() -> None:
    for pattern in long_patterns():
        path, _, name = pattern.partition("::")
        stem = path.partition(".py")[0].partition("[")[0].rstrip("*")
        files = list(ROOT.glob(f"{stem}*.py"))
        assert files, pattern
        word = re.match(r"\w*", name)
        assert word is not None
        functions = [f for file in files for f in re.findall(r"def (test_\w+)", file.read_text())]
        assert any(function.startswith(word[0]) for function in functions), pattern
