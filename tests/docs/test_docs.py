"""The docs are true: links lead somewhere, snippets and commands run, references are current."""

import re
import shutil
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer

import penstock
from penstock.config import load
from penstock.model.lane import KEYS as CONFIGURABLE
from tests.docs.blocks import PAGES, Block, blocks_of, name, pages_of
from tests.docs.commands import follow, run, run_console
from tests.docs.run_blocks import blocks
from tests.support.database_servers import postgres_url

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = sorted(DOCS.glob("guide-*.md"))
RUN_BLOCKS = Path(__file__).parent / "run_blocks.py"

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def links(page: Path) -> list[str]:
    return LINK.findall(FENCED.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """The anchors GitHub makes of a page's headings."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target), link


CITED = re.compile(r"`((?:src|tests|benchmarks|examples|tools|docs|proto)/[\w./*-]+)(?:::(\w+))?`")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_and_tests_that_are_cited_exist(page: Path) -> None:
    for path, test in CITED.findall(FENCED.sub("", page.read_text())):
        found = list(ROOT.glob(path.rstrip("/")))
        assert found or path == "benchmarks/partial/", path
        if test:
            assert re.search(rf"def {test}\(", found[0].read_text()), f"{path}::{test}"


def test_every_page_and_example_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        if page.suffix == ".md":
            local = [link.split("#")[0] for link in links(page) if "://" not in link]
            ahead += [(page.parent / path).resolve() for path in local if path]
    assert set(PAGES) <= reached
    named = "".join(FENCED.sub("", guide.read_text()) for guide in GUIDES)
    own = {"demo.py", "demo_view.py", "flaky_provider.py", "quickstart.py"}
    missing = [f.name for f in (ROOT / "examples").glob("*.py") if f.name not in named]
    assert set(missing) <= own


def test_page_of_all_pages_has_every_one() -> None:
    index = DOCS / "README.md"
    named = {(DOCS / link).resolve() for link in links(index) if "://" not in link}
    assert set(DOCS.glob("*.md")) - {index} <= named


def test_tagline_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tagline = project["description"]
    assert (ROOT / "README.md").read_text().splitlines()[2].rstrip(".") == tagline
    assert f"site_description: {tagline}\n" in (ROOT / "mkdocs.yml").read_text()
    assert penstock.__doc__ == f"{tagline}."


def test_readme_is_short_and_shows_the_example() -> None:
    readme = (ROOT / "README.md").read_text()
    assert readme.count("\n") < 120
    example = (ROOT / "examples" / "flaky_provider.py").read_text()
    body = example.split('"""\n\n', 1)[1]
    assert [text for language, text, _ in blocks(readme) if language == "python"] == [body]


def test_every_extra_is_in_all_and_can_be_found_before_it_is_missed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    [everything] = extras.pop("all")
    assert everything == f"penstock[{','.join(sorted(extras))}]"
    install = (ROOT / "README.md").read_text().partition("## Install")[2].partition("##")[0]
    table = (DOCS / "quickstart.md").read_text().partition("### Extras")[2].partition("##")[0]
    for text in (install, table):
        assert set(extras) <= set(re.findall(r"`(\w+)`", text))


def test_program_of_the_readme_runs(tmp_path: Path) -> None:
    [program] = [
        text for kind, text, _ in blocks((ROOT / "README.md").read_text()) if kind == "python"
    ]
    (tmp_path / "program.py").write_text(program)
    assert run([sys.executable, "program.py"], tmp_path).endswith("of water in its buckets. [1]\n")


@pytest.mark.parametrize("page", pages_of("test_snippets_of_a_page_run"), ids=name)
def test_snippets_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "DATABASE_URL" in page.read_text():
        monkeypatch.setenv("DATABASE_URL", postgres_url())
    run([sys.executable, str(RUN_BLOCKS), str(page)], tmp_path)


@pytest.mark.parametrize(
    "block", blocks_of("test_yaml_of_a_page_is_a_config"), ids=lambda block: block.where
)
def test_yaml_of_a_page_is_a_config(block: Block, tmp_path: Path) -> None:
    (tmp_path / "lanes.yaml").write_text("catalogue: {max_parallel: 2}\n")
    (tmp_path / "penstock.yaml").write_text(block.text)
    config = load({}, file=tmp_path / "penstock.yaml", environment={})
    assert any(str(tmp_path) in source for source in config.sources.values())


def test_backup_snippet_makes_a_queue(tmp_path: Path) -> None:
    run(["penstock", "enqueue", "mail", "--queue", "sqlite:///jobs.db"], tmp_path)
    run([sys.executable, str(RUN_BLOCKS), str(DOCS / "deployment.md")], tmp_path)
    listed = run(["penstock", "jobs", "list", "--queue", "sqlite:///backup.db"], tmp_path)
    assert "mail" in listed


def test_quickstart_runs_as_written(tmp_path: Path) -> None:
    follow((DOCS / "quickstart.md").read_text(), tmp_path)


@pytest.mark.parametrize("page", pages_of("test_commands_of_a_page_run_as_written"), ids=name)
def test_commands_of_a_page_run_as_written(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "documents", tmp_path / "examples" / "documents")
    for block in blocks_of("test_commands_of_a_page_run_as_written"):
        if block.page == page:
            run_console(block.text, tmp_path)


def test_every_guarantee_has_limits_and_a_test_that_attacks_it() -> None:
    page = (DOCS / "guarantees.md").read_text()
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    numbered = [section for section in sections if section[0].isdigit()]
    assert len(numbered) == 23
    for section in numbered:
        title = section.splitlines()[0]
        for part in ("**Limits**", "**How.**", "**Attacked by**"):
            assert part in section, f"{title}: no {part}"
        attacks = LINK.findall(section.split("**Attacked by**")[1])
        tests = [(DOCS / path).resolve() for path in attacks if path.startswith("../tests/")]
        assert tests, title
        for test in tests:
            assert re.search(r"^\s*(async )?def test_", test.read_text(), re.MULTILINE), test


REFERENCES = [*sorted(path.name for path in DOCS.glob("reference-*.md")), "architecture.md"]


@pytest.mark.parametrize("page", REFERENCES)
def test_reference_is_what_would_be_written(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.reference import PAGES  # which loads every part of Penstock

    assert sorted(PAGES) == sorted(REFERENCES)
    # The page of commands asks each for its help, and would make all of them anew each time.
    monkeypatch.setattr(typer.main, "get_command", cache(typer.main.get_command))
    written, current = (DOCS / page).read_text(), PAGES[page]()
    assert written == current, "run: .venv/bin/python -m tools.reference"


def test_help_shows_no_marks_of_its_layout() -> None:
    """A `\\b` keeps lines apart; escaped twice it would be shown."""
    assert "\\b" not in (DOCS / "reference-cli.md").read_text()


def test_reference_of_lanes_explains_every_key() -> None:
    from tools.reference import KEYS

    assert list(KEYS) == CONFIGURABLE


def test_pictures_load_nothing_from_elsewhere() -> None:
    pictures = {picture.name: picture.read_text() for picture in DOCS.rglob("*.svg")}
    assert {"demo.svg", "outage.svg"} <= set(pictures)
    for picture, text in pictures.items():
        assert text.startswith("<svg "), picture
        assert not re.search(r"""(href|src)=["']?http|url\(["']?http|@import""", text), picture
