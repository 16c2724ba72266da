"""Writes the tree of packages and modules in docs/architecture.md, from their docstrings."""

from __future__ import annotations

import ast
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src" / "penstock"
BEGIN, END = "<!-- tree: python -m tools.reference -->\n", "<!-- end of the tree -->\n"
WIDTH = 118
GENERATED = ("v1",)
"""Packages that another tool writes; named, not listed."""


def architecture_page() -> str:
    """The page as it is, with today's layers and tree."""
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{_layers()}\n```text\n{_tree(SOURCE)}```\n\n{END}{after}"


def _layers() -> str:
    """A row for each layer, top down, with what its packages are."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one["id"] == "layers"]
    rows = ["| layer | packages |", "|---|---|"]
    for number, layer in enumerate(layers, 1):
        packages = ", ".join(f"`{name.strip()}`" for name in layer.split(":"))
        rows.append(f"| {number} | {packages} |")
    return "\n".join(rows) + "\n"


def _tree(folder: Path, depth: int = 0) -> str:
    """A line for each module and package below `folder`: its name and what its docstring says."""
    entries = [
        path
        for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name))
        if (path.suffix == ".py" and path.name not in ("__init__.py", "__main__.py"))
        or (path / "__init__.py").exists()
    ]
    lines = ""
    for path in entries:
        module = path / "__init__.py" if path.is_dir() else path
        name = f"{path.name}/" if path.is_dir() else path.name
        lines += _line(f"{'  ' * depth}{name}", _summary(module))
        if path.is_dir() and path.name not in GENERATED:
            lines += _tree(path, depth + 1)
    return lines


def _line(name: str, summary: str) -> str:
    """A name, and beside it a summary of one or more lines."""
    column = 36
    wrapped = textwrap.wrap(summary, WIDTH - column) or [""]
    first, *others = wrapped
    return "".join(
        f"{line}\n"
        for line in (f"{name:<{column - 1}} {first}", *(f"{'':<{column}}{one}" for one in others))
    )


def _summary(module: Path) -> str:
    """The first sentence of a module's docstring, which may go over several lines."""
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    return " ".join(docstring.split("\n\n")[0].split())
