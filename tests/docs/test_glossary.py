"""The glossary has every public class and every command."""

import re
from pathlib import Path

import pytest
import typer

import penstock
from penstock.cli import cli

GLOSSARY = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
COMMANDS = sorted(typer.main.get_command(cli).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in penstock.__all__ if name != "__version__"])
def test_every_public_class_is_in_the_glossary(name: str) -> None:
    assert f"`{name}`" in GLOSSARY


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_glossary(command: str) -> None:
    one = command.removesuffix("s")
    assert re.search(rf"`penstock {command}`|^\| {one} \|", GLOSSARY, re.MULTILINE)


def test_no_word_has_two_meanings() -> None:
    words = re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE)
    assert len(words) > 50
    assert sorted(word for word in set(words) - {"word"} if words.count(word) > 1) == []
