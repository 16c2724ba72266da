"""Displays a document: a line in a list, all its details, or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.cli.output import (
    Looks,
    console,
    is_terminal,
    print_fields,
    print_table,
    say,
)
from penstock.cli.text import age, duration, moment, plural, pretty, printable, problem
from penstock.model.document import Document, DocumentState, StoredChunk

MENDED = "repair the file or convert it to another format, then ingest it again"
UNREADABLE = {
    "encrypted": "save it without a password and ingest it again",
    "empty": "the file is empty; ingest it again once it has content",
    "scanned": "set `documents: {scans: ocr}`, or `model`, then ingest it again with --retry",
    "unknown": "convert it to a supported format, such as PDF, and ingest it again",
    "oversized": "split it and ingest the parts",
    "bomb": "it unpacks to too much data; if you trust it, ingest its contents instead",
    "slow": "split it, or convert it to another format, and ingest that",
    "memory": "split it, or convert it to another format, and ingest that",
}
"""Advice for a document that cannot be parsed, by reason."""


def advice(error: Mapping[str, Any], document_id: str) -> str:
    """Advice for a failed document."""
    again = f"penstock documents retry {document_id!r}"
    match error["type"]:
        case "ParserError":
            return UNREADABLE.get(error.get("reason", ""), MENDED)
        case "DocumentTooLarge":
            return "split it, or raise the setting document_bytes, and ingest it again"
        case "BlobMissing":
            return "ingest it again"
        case "InputError" | "ValidationError":
            return "it was not accepted; fix the problem and ingest it again"
        case "AddressRefused" | "FetchError":
            return f"check the URL; to fetch it again: {again}"
        case "ConfigError":
            return f"follow the message, then: {again}"
        case "AuthenticationError" | "EmbedderError" | "HttpError" | "ModelError":
            return f"check the settings of the embedder, and of the model for scans; then: {again}"
        case _:
            return f"penstock dead-letters list has the whole history; to try again: {again}"


def where(pages: tuple[int, int] | None, section: Sequence[str]) -> str:
    """Locate a passage in its document: its pages and headings, if any."""
    parts = []
    if pages is not None:
        first, last = pages
        parts.append(f"page {first}" if first == last else f"pages {first} to {last}")
    if section:
        parts.append(" > ".join(map(printable, section)))
    return ", ".join(parts)


def masked(counts: Mapping[str, int]) -> str:
    """Format counts: `email 2, phone 1`."""
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))


def about(document: Document) -> str:
    """Summarize a document, depending on its state."""
    match document.state:
        case DocumentState.PROCESSING:
            old = "; the previous version is searchable" if document.searchable else ""
            return f"{document.stage} {document.progress:.0%}{old}"
        case DocumentState.FAILED:
            old = "; the previous version is searchable" if document.searchable else ""
            return problem(document.error) + old
        case DocumentState.COMPLETED:
            return plural(document.chunks, "chunk")


def print_documents(documents: Sequence[Document]) -> None:
    """Print a table of documents; empty columns are left out."""
    collections = len({document.collection for document in documents}) > 1
    rows = [
        {
            "id": printable(document.id),
            **({"collection": printable(document.collection)} if collections else {}),
            "state": str(document.state),
            "title": printable(document.title) or "-",
            "age": age(document.accepted_at),
            "about": about(document),
        }
        for document in documents
    ]
    print_table(rows, Looks(right=["age"], fold=["id"], cut=["title", "about"]))


def print_document(document: Document) -> None:
    """Print all details of a document."""
    error = document.error
    took = ""
    if document.started_at and document.finished_at:
        took = f", took {duration(document.finished_at - document.started_at)}"
    processing = document.state is DocumentState.PROCESSING
    print_fields(
        {
            "id": printable(document.id),
            "collection": printable(document.collection),
            "tenant": printable(document.tenant),
            "state": str(document.state),
            "stage": f"{document.stage}, {document.progress:.0%}" if processing else "",
            "searchable": _searchable(document),
            "title": printable(document.title),
            "format": document.mime,
            "size": f"{document.size:,} bytes",
            "source": printable(document.source),
            "metadata": pretty(dict(document.metadata)) if document.metadata else "",
            "reading": pretty(dict(document.reading)) if document.reading else "",
            "chunks": f"{document.chunks:,}" if document.chunks else "",
            "masked": masked(document.masked),
            "accepted": moment(document.accepted_at),
            "finished": moment(document.finished_at) + took if document.finished_at else "",
            "error": problem(error),
            "what to do": printable(advice(error, document.id)) if error else "",
        }
    )


def _searchable(document: Document) -> str:
    if not document.searchable:
        return "no"
    return "yes" if document.state is DocumentState.COMPLETED else "previous version"


def print_chunks(chunks: Sequence[StoredChunk]) -> None:
    """Print the indexed chunks, each with its location."""
    for chunk in chunks:
        place = where(chunk.pages, chunk.section)
        head = f"chunk {chunk.ordinal}, {plural(chunk.tokens, 'token')}"
        say()
        if is_terminal():
            console().print(f"[bold]{head}[/bold]", end="")
            console().print(f"  {place}", markup=False, style="dim")
        else:
            say(f"{head}  {place}".rstrip())
        for line in chunk.text.split("\n"):
            say(f"  {printable(line)}".rstrip())
