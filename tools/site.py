"""What the docs' site needs beyond plain pages: a hook of mkdocs, which mkdocs.yml names.

The pages are written to be read where they are: their links are relative, and lead to code and
tests as well. So a file outside docs/ that a page links to becomes a page of the site, and links
are bent to it. The navigation follows from the names of the files: a new guide is in it without
being entered anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
NAVIGATION: dict[str, tuple[str, ...]] = {
    "Why": ("README.md", "docs/why.md"),
    "Quickstart": ("docs/quickstart.md",),
    "Guides": (
        *("docs/guide-jobs.md", "docs/guide-steps.md", "docs/guide-periodic.md"),
        *("docs/guide-lanes.md", "docs/guide-usage.md"),
        *("docs/guide-documents.md", "docs/guide-research.md", "docs/guide-answers.md"),
        *(
            "docs/guide-server.md",
            "docs/guide-mcp.md",
            "docs/guide-tools.md",
            "docs/guide-dashboard.md",
        ),
        "docs/guide-web.md",
        "docs/guide-*.md",
    ),
    "Operations": ("docs/operations*.md", "docs/deploy*.md"),
    "Guarantees": ("docs/guarantees.md", "docs/architecture.md", "docs/glossary.md"),
    "Proof": ("docs/proof.md", "benchmarks/*.md"),
    "References": ("docs/reference-*.md",),
    "Comparison": ("docs/comparison.md",),
    "Decisions": ("docs/decisions/README.md", "docs/decisions/*.md"),
    "Changelog": ("CHANGELOG.md", "CONTRIBUTING.md"),
}
"""Patterns by section. A page goes where it fits first, and the patterns give the order."""
HOME = "README.md"
INDEX = "docs/README.md"
"""All pages, for who reads them where they are; in the site the navigation is that, and mkdocs.yml
leaves it out."""

FENCE = re.compile(r"^ *(```+)")
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
LANGUAGES = {".py": "python", ".sql": "sql", ".lua": "lua", ".json": "json", ".yaml": "yaml"}


def navigation(pages: Iterable[str]) -> dict[str, list[str]]:
    """Every page (a path from the root) in its section. Raises ValueError where one fits none."""
    left = sorted(pages)
    sections: dict[str, list[str]] = {name: [] for name in NAVIGATION}
    for name, patterns in NAVIGATION.items():
        for pattern in patterns:
            fitting = [page for page in left if fnmatch(page, pattern)]
            sections[name] += fitting
            left = [page for page in left if page not in fitting]
    if left:
        raise ValueError(f"in no section of tools/site.py: {', '.join(left)}")
    return {name: found for name, found in sections.items() if found}


def pages() -> list[str]:
    """The Markdown of the project that is for readers."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
    named = [path.relative_to(ROOT).as_posix() for path in found]
    return [name for name in named if name != INDEX]


def place(path: str) -> str:
    """Where in the site a file of the project is."""
    if path in (HOME, INDEX):
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if path.endswith(".md") else f"code/{path}.md"


def slug(heading: str, separator: str) -> str:
    """The anchor that code hosts make of a heading; links in the docs count on it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    config.nav = [
        {name: place(found[0]) if len(found) == 1 else [place(page) for page in found]}
        for name, found in navigation(pages()).items()
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages outside docs/, and what any page links to."""
    for path in pages():
        text = (ROOT / path).read_text()
        if not path.startswith("docs/"):
            files.append(File.generated(config, place(path), content=text))
        for target in _targets(path, text):
            if files.get_file_from_path(place(target)) is None:
                files.append(File.generated(config, place(target), content=_code_page(target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    if uri.startswith("code/"):
        return markdown
    path = next(path for path in pages() if place(path) == uri)
    lines: list[str] = []
    for line, prose in _lines(markdown):
        # A list may follow its sentence without an empty line on code hosts, and not in mkdocs.
        before = lines[-1] if lines else ""
        sentence = before.strip() and not ITEM.match(before) and not before.startswith(" ")
        if prose and ITEM.match(line) and sentence:
            lines.append("")
        lines.append(_bent(line, path) if prose else line)
    return "\n".join(lines) + "\n"


def _targets(path: str, text: str) -> Iterator[str]:
    """The files of the project a page links to that are not pages themselves."""
    for line, prose in _lines(text):
        for link in LINK.findall(line) if prose else ():
            target = _resolved(path, link)
            if target and not target.endswith(".md") and not target.startswith("docs/"):
                yield target


def _resolved(path: str, link: str) -> str | None:
    """The file of the project that a link in `path` leads to, if it leads to one."""
    address = link.partition("#")[0]
    if not address or "://" in address or address.startswith("mailto:"):
        return None
    return os.path.normpath(PurePosixPath(path).parent / address)


def _bent(line: str, path: str) -> str:
    here = PurePosixPath(place(path)).parent

    def bend(match: re.Match[str]) -> str:
        target = _resolved(path, match[0])
        if target is None:
            return match[0]
        _, mark, anchor = match[0].partition("#")
        return f"{os.path.relpath(place(target), here)}{mark}{anchor}"

    return LINK.sub(bend, line)


def _code_page(target: str) -> str:
    """A file, or what is in a folder, to be read in the site. It is not searched: prose is."""
    file = ROOT / target
    if file.is_dir():
        names = sorted(one.name for one in file.iterdir() if not one.name.startswith("_"))
        language, text = "text", "".join(f"{name}\n" for name in names)
    else:
        language, text = LANGUAGES.get(file.suffix, "text"), file.read_text()
    return f"---\nsearch:\n  exclude: true\n---\n# `{target}`\n\n`````{language}\n{text}`````\n"


def _lines(markdown: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is prose: not in a fenced block."""
    fence = ""
    for line in markdown.splitlines():
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
            yield line, False
        elif mark and mark[1].startswith(fence):
            fence = ""
            yield line, False
        else:
            yield line, not fence


def outside_references(site: Path) -> list[str]:
    """What the pages of a built site would load from another host."""
    loads = re.compile(
        r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?(https?://[^"'\s>]+)"""
    )
    styles = re.compile(r"""(?:url\(|@import\s*)["']?(https?://[^"')\s]+)""")
    found: list[str] = []
    for file in site.rglob("*"):
        look = {".html": loads, ".css": styles}.get(file.suffix)
        if look is not None:
            found += [
                f"{file.relative_to(site)}: {host}" for host in look.findall(file.read_text())
            ]
    return found
