"""Runs the python blocks of a Markdown page in order, in one namespace and one event loop.

Blocks may use `await` at top level, as `python -m asyncio` allows.
"""

import ast
import asyncio
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> Iterator[tuple[str, str, int]]:
    """(language, text, line number of the text) of each fenced block."""
    for match in BLOCK.finditer(page):
        yield match[1], match[2], page.count("\n", 0, match.start(2)) + 1


async def run(page: str, path: str) -> None:
    """Run the python blocks of `page`, the text of `path`."""
    module = ModuleType("page")
    sys.modules["page"] = module
    for language, text, line in blocks(page):
        if language == "python":
            # Empty lines in front, so that a traceback names the line of the page.
            code = compile(
                "\n" * (line - 1) + text,
                path,
                "exec",
                flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
                dont_inherit=True,
            )
            result = eval(code, vars(module))  # noqa: S307 (our own pages)
            if inspect.isawaitable(result):
                await result


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]).read_text(), sys.argv[1]))
