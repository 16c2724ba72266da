"""The docs' site: it has every page, its links lead somewhere, it loads nothing from elsewhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.site import navigation, outside_references, pages, place

ROOT = Path(__file__).parents[2]
PLAIN = {
    "INHERIT": str(ROOT / "mkdocs.yml"),
    "docs_dir": str(ROOT / "docs"),
    "hooks": [str(ROOT / "tools" / "site.py")],
    "markdown_extensions": [
        *("tables", "sane_lists", {"toc": {"permalink": True}}, "pymdownx.superfences"),
        {"pymdownx.highlight": {"use_pygments": False}},
    ],
}
"""The site without colours in its code, which are half of what it takes to build."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does: strict, so that a link that leads nowhere fails it."""
    folder = tmp_path_factory.mktemp("site")
    config = tmp_path_factory.mktemp("config") / "mkdocs.yml"
    config.write_text(json.dumps(PLAIN))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"),
            *("--config-file", str(config), "--site-dir", str(folder)),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_navigation_once() -> None:
    shown = [page for section in navigation(pages()).values() for page in section]
    assert sorted(shown) == sorted(pages())
    assert {"docs/why.md", "docs/proof.md", "docs/comparison.md", "CHANGELOG.md"} <= set(shown)


def test_a_page_that_fits_no_section_is_named() -> None:
    with pytest.raises(ValueError, match=r"docs/stray\.md"):
        navigation([*pages(), "docs/stray.md"])


def test_a_new_guide_is_in_the_navigation_by_its_name() -> None:
    assert "docs/guide-zebras.md" in navigation([*pages(), "docs/guide-zebras.md"])["Guides"]


def test_every_page_is_built_and_can_be_searched(site: Path) -> None:
    named = {page: place(page).replace("README.md", "index.md") for page in pages()}
    built = {page: (site / name).with_suffix(".html") for page, name in named.items()}
    assert [page for page, file in built.items() if not file.exists()] == []
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {file.relative_to(site).as_posix() for file in built.values()} <= found


def test_code_that_a_page_cites_is_in_the_site(site: Path) -> None:
    cited = "code/tests/integration/engine/test_crash.py.html"
    assert cited in (site / "guarantees.html").read_text()
    assert "test_a_killed_enqueuer_loses_no_batch" in (site / cited).read_text()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    assert outside_references(site) == []


def test_what_would_be_loaded_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<script defer src="https://example.org/x.js"></script>')
    (tmp_path / "page.css").write_text("@font-face { src: url(https://example.org/font) }")
    assert len(outside_references(tmp_path)) == 2
