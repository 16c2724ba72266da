"""`penstock search`: passages, where they are, and why they were found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.documents import pdf


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A queue with three documents in it."""
    cli = Cli(tmp_path_factory.mktemp("search"))
    (cli.folder / "report.pdf").write_bytes(pdf(pages=2))
    (cli.folder / "weir.md").write_text(
        "# Weirs\n\n## History\n\nThe old weir was built in 1920.\n"
    )
    (cli.folder / "note.txt").write_text("물은 아침에 흐른다. 문의: 010-1234-5678")
    cli("ingest", "report.pdf")
    cli("ingest", "weir.md", "--collection", "history", "--metadata", "year=1920")
    cli("ingest", "note.txt")
    yield cli
    cli.close()


def found(cli: Cli, *arguments: str) -> list[str]:
    return [one["document"] for one in cli("search", *arguments, "--json").json["passages"]]


def test_passages_are_cited_with_title_page_section_and_score(filled: Cli) -> None:
    shown = filled("search", "When was the weir built?", "--limit", "1").out
    head, text = shown.splitlines()
    assert head.startswith("  1. Weirs, Weirs > History  weir.md  ")
    assert float(head.split()[-1]) > 0
    assert text == "     The old weir was built in 1920."
    assert "page" in filled("search", "Page 2 of the report", "--limit", "1").out


def test_explained_by_both_ranks_and_scores(filled: Cli) -> None:
    shown = filled("search", "When was the weir built?", "--limit", "1", "--explain").out
    assert " by words (rank 1, BM25 " in shown
    assert " by meaning (rank 1, cosine " in shown


def test_json_has_everything(filled: Cli) -> None:
    result = filled("search", "weir", "--limit", "1", "--json").json
    assert (result["mode"], result["note"]) == ("hybrid", "")
    (passage,) = result["passages"]
    assert passage["document"] == "weir.md"
    assert passage["collection"] == "history"
    assert passage["section"] == ["Weirs", "History"]
    assert passage["pages"] is None
    ((start, end),) = passage["marks"]
    assert passage["snippet"][start:end] == "weir"
    assert passage["why"]["text_rank"] == passage["why"]["vector_rank"] == 1


def test_narrowed_by_collection_document_and_metadata(filled: Cli) -> None:
    assert set(found(filled, "weir")) == {"weir.md", "report.pdf", "note.txt"}
    assert set(found(filled, "weir", "--collection", "history")) == {"weir.md"}
    assert set(found(filled, "weir", "--document", "note.txt")) == {"note.txt"}
    assert set(found(filled, "weir", "--metadata", "year=1920")) == {"weir.md"}
    assert found(filled, "weir", "--tenant", "other") == []


def test_a_question_in_another_language_finds_it(filled: Cli) -> None:
    assert found(filled, "물은 언제 흐르나요?")[0] == "note.txt"
    assert "[PHONE]" in filled("search", "문의", "--document", "note.txt").out


def test_without_the_embedder_it_is_text_only_and_says_so(filled: Cli) -> None:
    (filled.folder / "down.yaml").write_text(
        "embedder:\n  provider: openai\n  base_url: http://127.0.0.1:9/v1\n"
        "  model: m\n  dimensions: 8\n"
    )
    done = filled("search", "weir", "--config", "down.yaml")
    assert done.err.startswith("text only, without vectors: ")
    assert "built in 1920" in done.out
    assert filled("search", "weir", "--config", "down.yaml", "--json").json["mode"] == "text"


def test_a_terminal_sees_the_words_that_match(filled: Cli) -> None:
    shown = filled.on_terminal("search", "weir", "--limit", "1")
    assert "\x1b[1;33mweir\x1b[0m" in shown


def test_nothing_found_is_no_error(filled: Cli) -> None:
    done = filled("search", "weir", "--collection", "nowhere")
    assert (done.out, done.err) == ("", "nothing found\n")


@pytest.mark.parametrize(
    ("arguments", "says"), [([" "], "the question is empty"), (["x", "--limit", "0"], "--limit")]
)
def test_wrong_questions_are_exit_code_2(filled: Cli, arguments: list[str], says: str) -> None:
    assert says in filled("search", *arguments, code=2).err


def test_no_queue_yet_is_exit_code_3(cli: Cli) -> None:
    assert "no queue at" in cli("search", "weir", code=3).err
    assert not Path(cli.path).exists()
