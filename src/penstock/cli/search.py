"""`penstock search`: finds passages that answer a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import MetadataOption, OwnerOption, flag, metadata_of, option
from penstock.cli.output import console, is_terminal, note, print_json, say
from penstock.cli.session import Session
from penstock.cli.text import printable

if TYPE_CHECKING:
    from rich.text import Text

    from penstock.retrieval.search import Passage


def search_documents(
    *,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="Question or keywords.")],
    collection: list[str] | None = option("NAME", "Only this collection; repeatable."),
    document: list[str] | None = option("ID", "Only this document; repeatable."),
    metadata: MetadataOption = None,
    tenant: OwnerOption = "default",
    limit: int = option("N", "Maximum number of passages.", default=5, min=1, max=100),
    explain: bool = flag("--explain", "Show how each passage was ranked."),
    session: Session,
) -> None:
    """Find the passages of documents that answer a question.

    Hybrid search: by keywords and by meaning. If the embedder is unreachable, the search is by
    keywords only, and the output says so. Personal data in the question is not searched for: it
    was masked before anything was stored.
    """
    with session.opened("documents") as (app, run):
        result = run(
            app.documents.search(
                question,
                tenant=tenant,
                collections=collection or None,
                documents=document or None,
                metadata=metadata_of(metadata),
                limit=limit,
            )
        )
    if session.as_json:
        print_json(result)
        return
    if result.note:
        note(f"{'text only, ' if result.mode == 'text' else ''}{printable(result.note)}")
    if not result.passages:
        note("nothing found")
    for number, passage in enumerate(result.passages, 1):
        _print(number, passage, explain=explain)


def _print(number: int, passage: Passage, *, explain: bool) -> None:
    from penstock.cli.document_view import where

    name = printable(passage.document)
    title = printable(passage.title) or name
    # Many documents begin with their title as a heading: once is enough.
    section = passage.section[passage.section[:1] == (passage.title,) :]
    place = where(passage.pages, section)
    tail = "" if title == name else f"  {name}"
    lines = [f"     {_why(passage)}"] if explain else []
    if number > 1:
        say()
    if not is_terminal():
        say(f"{number:>3}. {f'{title}, {place}' if place else title}{tail}  {passage.score:.2f}")
        say(f"     {_one_line(passage.snippet)}".rstrip())
        for line in lines:
            say(line)
        return
    from rich.padding import Padding
    from rich.text import Text

    screen = console()
    head = Text.assemble(f"{number:>3}. ", (title, "bold"), f", {place}" if place else "")
    head.append_text(Text.assemble((tail, "cyan"), (f"  {passage.score:.2f}", "dim")))
    screen.print(head, soft_wrap=True)
    screen.print(Padding(_marked(passage), (0, 0, 0, 5)))
    for line in lines:
        screen.print(Text(line, style="dim"))


def _one_line(text: str) -> str:
    """Replace each line end by one space, so that offsets stay valid."""
    return printable(text.replace("\n", " ").replace("\t", " "))


def _marked(passage: Passage) -> Text:
    from rich.text import Text

    text, at = Text(), 0
    for start, end in passage.marks:
        text.append(_one_line(passage.snippet[at:start]))
        text.append(_one_line(passage.snippet[start:end]), style="bold yellow")
        at = end
    text.append(_one_line(passage.snippet[at:]))
    text.rstrip()
    return text


def _why(passage: Passage) -> str:
    """Explain a score: the rank and score by words and by meaning."""
    why = passage.why
    words = meaning = "no match"
    if why.text_rank is not None:
        words = f"rank {why.text_rank}, BM25 {why.text_score:.3g}"
    if why.vector_rank is not None:
        meaning = f"rank {why.vector_rank}, cosine {why.vector_score:.3f}"
    if why.other_script:
        words = "included by meaning: in another script than the question"
    rest = passage.score - why.text_share
    return f"{why.text_share:.2f} by words ({words}) + {rest:.2f} by meaning ({meaning})"
