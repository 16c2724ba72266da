"""One word for one thing, and docstrings that name what they describe."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import penstock

SOURCE = Path(penstock.__file__).parent
RIDDLE = re.compile(r"(What|Who|Whoever|Whose|Whom|How|Which|It) ")
ADAPTERS = {"Claimed", "Renewal", "Transaction", "Wakeups"}
"""Of several adapters of one port."""


@cache
def described() -> list[tuple[Path, ast.Module | ast.ClassDef]]:
    """Every module, and every class in one."""
    found: list[tuple[Path, ast.Module | ast.ClassDef]] = []
    for file in SOURCE.rglob("*.py"):
        tree = ast.parse(file.read_text())
        place = file.relative_to(SOURCE)
        found.append((place, tree))
        found += [(place, one) for one in tree.body if isinstance(one, ast.ClassDef)]
    return found


def test_first_lines_begin_with_a_verb_or_with_the_name_of_the_thing() -> None:
    first = [(place, (ast.get_docstring(node) or "").split("\n")[0]) for place, node in described()]
    assert [f"{place}: {line}" for place, line in first if RIDDLE.match(line)] == []


def test_no_public_class_name_stands_for_two_things() -> None:
    places = defaultdict(set)
    for place, node in described():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            places[node.name].add(str(place))
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in ADAPTERS} == {}
    assert twice.keys() == ADAPTERS, "what is no longer there twice"
