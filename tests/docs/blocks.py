"""Which test runs the blocks of the pages, and which blocks none does, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from tests.docs.run_blocks import blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for where in ("*.md", "docs/**/*.md", "benchmarks/*.md", "deploy/*.md")
    for path in ROOT.glob(where)
)

SHOWN = "text"
"""The language of what is only to be looked at: a picture, an output, a form of a call."""

SERVER_GUIDE = "test_server_guide.py::test_guide_to_the_server_runs_as_written"
TESTING_GUIDE = "test_guide_to_testing_runs_as_written"
RUN_BY: tuple[tuple[str, str, str], ...] = (
    ("README.md", "python", "test_docs.py::test_program_of_the_readme_runs"),
    ("docs/quickstart.md", "python", "test_docs.py::test_quickstart_runs_as_written"),
    ("docs/quickstart.md", "console", "test_docs.py::test_quickstart_runs_as_written"),
    ("docs/deployment.md", "python", "test_docs.py::test_backup_snippet_makes_a_queue"),
    ("docs/operations.md", "ini", "test_blocks.py::test_unit_of_systemd_starts_a_worker"),
    ("docs/guide-server.md", "python", SERVER_GUIDE),
    ("docs/guide-server.md", "console", SERVER_GUIDE),
    (
        "docs/guide-server.md",
        "javascript",
        "test_server_guide.py::test_script_of_the_guide_to_the_server_follows_a_document",
    ),
    *(
        (f"docs/guide-{name}.md", language, f"test_{name}_guide.py::{test}")
        for name, test in {
            "answers": "test_guide_to_answers_runs_as_written",
            "mcp": "test_guide_to_mcp_runs_as_written",
            "research": "test_guide_to_research_runs_as_written",
            "tools": "test_guide_to_tools_runs_as_written",
        }.items()
        for language in ("python", "console")
    ),
    *(
        ("docs/guide-testing.md", language, f"test_testing_guide.py::{TESTING_GUIDE}")
        for language in ("python", "ini")
    ),
    ("docs/guide-mcp.md", "json", "test_mcp_guide.py::test_configuration_to_paste_starts_it"),
    ("docs/guide-lanes.md", "console", "test_blocks.py::test_lanes_are_shown_as_the_guide_shows"),
    ("docs/guide-postgres.md", "sql", "test_blocks.py::test_grants_let_a_worker_work"),
    ("docs/*.md", "python", "test_docs.py::test_snippets_of_a_page_run"),
    ("docs/*.md", "console", "test_docs.py::test_commands_of_a_page_run_as_written"),
    ("*", "yaml", "test_docs.py::test_yaml_of_a_page_is_a_config"),
    ("*", "json", "test_blocks.py::test_json_of_a_page_can_be_read"),
    ("*", "sh", "test_blocks.py::test_lines_for_the_shell_can_be_run"),
)
"""(page, language, test): the first that fits. The tests take their pages from here."""

NOT_RUN: dict[tuple[str, str], str] = {
    ("docs/quickstart.md", "make setup"): "the environment it makes is the one the tests run in",
}
"""By page and first line: why no test runs the block."""


class Block(NamedTuple):
    page: Path
    language: str
    text: str
    line: int

    @property
    def where(self) -> str:
        return f"{name(self.page)}:{self.line}"

    @property
    def mark(self) -> tuple[str, str]:
        return name(self.page), self.text.partition("\n")[0]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def all_blocks() -> Iterator[Block]:
    for page in PAGES:
        for language, text, line in blocks(page.read_text()):
            yield Block(page, language, text, line)


def runner_of(block: Block) -> str | None:
    """The test that runs it, if one does."""
    if block.language == SHOWN or block.mark in NOT_RUN:
        return None
    for page, language, test in RUN_BY:
        if language == block.language and fnmatch(name(block.page), page):
            return test
    return None


def blocks_of(test: str) -> list[Block]:
    """Those that a test has to run."""
    return [block for block in all_blocks() if (runner_of(block) or "").endswith(f"::{test}")]


def pages_of(test: str) -> list[Path]:
    return list(dict.fromkeys(block.page for block in blocks_of(test)))
