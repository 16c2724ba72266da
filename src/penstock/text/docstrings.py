"""Reads docstrings: what a function does, and what is said of each parameter, in the styles of
Google, NumPy and Sphinx."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

_SPHINX = re.compile(r":param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_FIELD = re.compile(r":\w+(\s[^:]*)?:")
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY = re.compile(r"\*{0,2}(\w+)(?:\s*:.*)?$")
_PARAMETERS = ("args", "arguments", "parameters", "params")
_SECTIONS = (*_PARAMETERS, "returns", "return", "raises", "yields", "yield", "examples", "example")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The text without its sections, each paragraph on one line; and the parameters' texts."""
    lines = inspect.cleandoc(text or "").splitlines()
    about: list[str] = []
    said: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        name = line.rstrip(":").lower()
        ruled = at + 1 < len(lines) and set(lines[at + 1].strip()) == {"-"}
        if name in _SECTIONS and (line.endswith(":") or ruled):
            inside, at = _section(lines, at + (2 if ruled else 1), ruled=ruled)
            if name in _PARAMETERS:
                said |= dict(_parameters(inside, _NUMPY if ruled else _GOOGLE))
            continue
        if _FIELD.match(line):
            field, at = _field(lines, at)
            if found := _SPHINX.match(field):
                said[found[1]] = found[2]
            continue
        about.append(line)
        at += 1
    paragraphs = "\n".join(about).strip().split("\n\n")
    return "\n\n".join(flat for one in paragraphs if (flat := " ".join(one.split()))), said


def _section(lines: list[str], start: int, *, ruled: bool) -> tuple[list[str], int]:
    """The lines of a section, and where it ends: at a line that is not indented, or for NumPy at
    the next ruled heading."""
    end = start
    while end < len(lines):
        flush = bool(lines[end].strip()) and not lines[end][0].isspace()
        following = lines[end + 1].strip() if end + 1 < len(lines) else ""
        if flush and (not ruled or set(following) == {"-"}):
            break
        end += 1
    return lines[start:end], end


def _field(lines: list[str], start: int) -> tuple[str, int]:
    """A Sphinx field with its continuation lines."""
    end = start + 1
    while end < len(lines) and lines[end][:1].isspace():
        end += 1
    return " ".join(line.strip() for line in lines[start:end]), end


def _parameters(lines: list[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    named = [line for line in lines if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in named), default=0)
    name, words = "", [""]
    for line in named:
        found = pattern.match(line.strip()) if len(line) - len(line.lstrip()) == margin else None
        if found is None:
            words.append(line.strip())
            continue
        if name:
            yield name, " ".join(words).strip()
        name, words = found[1], list(found.groups()[1:])
    if name:
        yield name, " ".join(words).strip()
