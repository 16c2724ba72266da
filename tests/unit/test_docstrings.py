"""Docstrings say what a module or class is, in their first words."""

import ast
import re
from pathlib import Path

import penstock

SOURCE = Path(penstock.__file__).parent
RIDDLE = re.compile(r"(What|Who|Whoever|Whose|Whom|How|Which|It) ")


def test_first_lines_begin_with_a_verb_or_with_the_name_of_the_thing() -> None:
    riddles = []
    for file in SOURCE.rglob("*.py"):
        tree = ast.parse(file.read_text())
        described: list[ast.Module | ast.ClassDef] = [tree]
        described += [one for one in tree.body if isinstance(one, ast.ClassDef)]
        for node in described:
            first = (ast.get_docstring(node) or "").split("\n")[0]
            if RIDDLE.match(first):
                riddles.append(f"{file.relative_to(SOURCE)}: {first}")
    assert riddles == []
