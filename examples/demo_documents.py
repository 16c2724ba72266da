"""Documents in three languages: ingested by the command line, found by the library; and questions
answered from them, with citations.

    python examples/demo_documents.py

It is also the second part of the demo. Everything it needs comes with Penstock: no server, no
network. It fails unless every document is found by its question, with its page or section, every
sentence of an answer stands where it says, and no personal data is left anywhere.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from penstock import Penstock
from penstock.model.answer import Answer, Citation, Evidence

DOCUMENTS = Path(__file__).resolve().parent / "documents"
SMALL_CHUNKS: dict[str, Any] = {"chunk_tokens": 80, "chunk_overlap": 16}
"""The documents are short; with chunks of the usual size each would be one passage."""


BLANKS = re.compile(r"\s+")


class Question(NamedTuple):
    text: str
    document: str
    place: str
    """The page or section it must be found on."""


QUESTIONS = [
    Question("Where are the seals and shear pins?", "turbine.pdf", "page 3"),
    Question("Why did nobody notice the flood?", "incident.html", "Why nobody noticed"),
    Question("去年は鮎が何匹通りましたか", "fish-ladder.ja.html", "数え方"),
    Question("단체 예약은 언제까지 해야 하나요?", "visitors.ko.md", "단체 관람"),
    Question("Is the museum open on Mondays?", "visitors.ko.md", "방문객 안내"),
]
"""The last one is asked in another language than it is answered in."""
ANSWERED = [
    Question("Where are the seals and shear pins?", "turbine.pdf", "Seals and shear pins are in"),
    Question("단체 예약은 언제까지 해야 하나요?", "visitors.ko.md", "일주일 전에 예약해야 한다"),
]
"""Here the place is what the answer must say."""
PRIVATE = [
    *("dana.whitfield", "010-9999", "claims@", "DE89 3704", "192.0.2.7", "upper@", "555 010 0001"),
    *("010-1234-5678", "gate.kim", "110-123-456789", "02-123-4567", "090-1234-5678", "toban@"),
    *("rowan.pike", "4111 1111"),
]
"""Invented, and somewhere in the documents. Long enough not to be met in a file by chance."""


async def show(folder: Path, console: Console) -> bool:
    """Ingest, ask, look for what must not be there; whether all is as promised."""
    began = time.monotonic()
    url = f"sqlite:///{folder}/documents.db"
    console.print(f"\n  [bold]{len(list(DOCUMENTS.iterdir()))} documents[/bold] in 3 languages\n")
    await asyncio.to_thread(_ingest, url, console)
    app = Penstock(url, **SMALL_CHUNKS)
    store = app.use("answers").documents
    async with app.running(kinds=["answers.*"]):
        found = [await _ask(app, question, console) for question in QUESTIONS]
        console.print("  [bold]Answers[/bold], without a model: sentences, and where they stand\n")
        answered = [await _answer(app, question, console) for question in ANSWERED]
        documents = await store.documents()
        texts = [chunk.text for one in documents for chunk in await store.chunks(one.ref.id)]
    masked = sum((Counter(one.masked) for one in documents), Counter[str]())
    leaks = [secret for secret in PRIVATE for text in texts if secret in text]
    stored = await asyncio.to_thread(_stored, folder)
    leaks += [secret for secret in PRIVATE if secret.encode() in stored]
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(masked.items()))
    for name, value, remark in [
        ("documents searchable", sum(one.searchable for one in documents), f"{len(texts)} chunks"),
        ("passages found", sum(found), f"of {len(QUESTIONS)}, the right one first"),
        ("questions answered", sum(answered), f"of {len(ANSWERED)}, all they say cited"),
        ("personal data masked", masked.total(), kinds),
        ("personal data left", len(leaks), "in any chunk, or anywhere in the file"),
        ("seconds", round(time.monotonic() - began, 1), "with loading the model, twice"),
    ]:
        line = Text.assemble(f"  {name:<22} ", (f"{value:>5}", "bold"), (f"   {remark}", "dim"))
        console.print(line, soft_wrap=True)
    console.print()
    names = {Path(one.source).name for one in documents if one.state == "completed"}
    every = names == {file.name for file in DOCUMENTS.iterdir()}
    return every and all((*found, *answered)) and not leaks and masked.total() >= len(PRIVATE)


def _ingest(url: str, console: Console) -> None:
    """`penstock ingest`, on this terminal if there is one."""
    command = [sys.executable, "-m", "penstock.cli", "ingest", str(DOCUMENTS), "--queue", url]
    sizes = {f"PENSTOCK_{name.upper()}": str(size) for name, size in SMALL_CHUNKS.items()}
    console.print("  [cyan]penstock ingest examples/documents[/cyan]")
    live = console.is_terminal and not console.record
    ended = subprocess.run(
        command,
        cwd=DOCUMENTS.parent,
        env={**os.environ, **sizes},
        stdout=None if live else subprocess.PIPE,
        check=False,
    )
    if ended.stdout is not None:
        for line in ended.stdout.decode().splitlines():
            console.print(Text(f"  {line}"), soft_wrap=True)
    if ended.returncode != 0:
        raise SystemExit(f"penstock ingest ended with exit code {ended.returncode}")
    console.print()


def _stored(folder: Path) -> bytes:
    """All that was written, but for what was deleted again."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


async def _ask(app: Penstock, question: Question, console: Console) -> bool:
    """Show the best passage with where it is; whether it is the right one."""
    result = await app.documents.search(question.text, limit=1)
    (passage,) = result.passages
    first, last = passage.pages or (0, -1)
    pages = [f"page {page}" for page in range(first, last + 1)]
    headings = [heading for heading in passage.section if heading != passage.title]
    parts = [passage.title, " and ".join(pages), *headings]
    cited = ", ".join(part for part in parts if part)
    snippet, at = Text(), 0
    for start, end in [*passage.marks, (len(passage.snippet),) * 2]:
        snippet.append(BLANKS.sub(" ", passage.snippet[at:start]))
        snippet.append(passage.snippet[start:end], "bold yellow")
        at = end
    console.print(Text.assemble("  ", (question.text, "bold")))
    console.print(Padding(snippet, (0, 4), expand=False))
    console.print(Text.assemble("    ", (cited, "cyan")))
    console.print()
    places = [*pages, *passage.section]
    return Path(passage.source).name == question.document and question.place in places


async def _answer(app: Penstock, question: Question, console: Console) -> bool:
    """Show an answer with what it cites; whether it says what it must, and where that stands."""
    asked = await app.answers.ask(question.text)
    answer = await app.answers.wait(asked.id, timeout=60)
    evidence = {one.number: one for one in answer.evidence}
    console.print(Text.assemble("  ", (question.text, "bold")))
    console.print(Padding(Text(answer.text), (0, 4), expand=False))
    for number in sorted({one.number for one in answer.citations}):
        one = evidence[number]
        pages = "" if one.pages is None else f", pages {one.pages[0]} to {one.pages[1]}"
        console.print(Text.assemble("    ", (f"[{number}] {one.title}{pages}", "cyan")))
    console.print()
    return (
        answer.state == "completed"
        and len(answer.citations) == len(answer.text.splitlines())
        and not answer.unsupported
        and question.place in answer.text
        and all(_stands(line, cited.number, evidence) for line, cited in _pairs(answer))
        and Path(evidence[answer.citations[0].number].document).name == question.document
    )


def _pairs(answer: Answer) -> list[tuple[str, Citation]]:
    """Each sentence of an answer without a model, and its citation."""
    return list(zip(answer.text.splitlines(), answer.citations, strict=True))


def _stands(line: str, number: int, evidence: Mapping[int, Evidence]) -> bool:
    """Whether a sentence is in the passage it cites."""
    said = BLANKS.sub(" ", line.removesuffix(f"[{number}]")).strip()
    return said in BLANKS.sub(" ", evidence[number].text)


def main() -> int:
    with TemporaryDirectory(prefix="penstock-documents-") as folder:
        good = asyncio.run(show(Path(folder), Console(highlight=False)))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
