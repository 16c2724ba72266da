"""`penstock documents`: list, show, delete, retry."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import NotFound, UsageError
from penstock.cli.options import (
    CollectionOption,
    ConfigOption,
    JsonOption,
    LimitOption,
    OwnerOption,
    QueueOption,
    new_group,
)
from penstock.cli.output import note, print_json, say
from penstock.cli.session import opened
from penstock.cli.text import plural, printable
from penstock.errors import DocumentNotFound
from penstock.model.document import DEFAULT_COLLECTION, DocumentState

if TYPE_CHECKING:
    from penstock.app import Penstock

group = new_group("List, show, delete and retry documents.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Document id.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID", help="Document ids.")]
OnlyCollectionOption = Annotated[
    str | None, typer.Option("--collection", metavar="NAME", help="Only this collection.")
]


@group.command("list")
def list_documents(
    state: Annotated[
        list[DocumentState] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="processing, completed or failed; repeatable.",
        ),
    ] = None,
    collection: OnlyCollectionOption = None,
    tenant: OwnerOption = "default",
    limit: LimitOption = 50,
    before: Annotated[
        int | None,
        typer.Option(
            "--before", metavar="GENERATION", min=1, help="Next page: documents older than this."
        ),
    ] = None,
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List documents, most recently accepted first."""
    from penstock.cli.document_view import print_documents

    with opened(queue, config, "documents") as (app, run):
        found = run(
            app.documents.documents(
                tenant=tenant,
                collection=collection,
                states=state or None,
                limit=limit,
                before=before,
            )
        )
    if as_json:
        print_json(found)
    elif not found:
        note("no documents match" if state or collection or before else "no documents")
    else:
        print_documents(found)
        if len(found) == limit:
            note(f"there may be more: --before {found[-1].generation}")


@group.command("show")
def show(
    document_id: IdArgument,
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Include the indexed text, with page numbers.")
    ] = False,
    collection: CollectionOption = DEFAULT_COLLECTION,
    tenant: OwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a document in full: progress, masked data, and errors."""
    from penstock.cli.document_view import print_chunks, print_document
    from penstock.wire.view import fields_of

    with opened(queue, config, "documents") as (app, run):
        document = run(app.documents.get(document_id, collection=collection, tenant=tenant))
        texts = []
        if chunks:
            texts = run(app.documents.chunks(document_id, collection=collection, tenant=tenant))
    if as_json:
        parts = {"texts": texts} if chunks else {}
        print_json({**fields_of(document), **parts})
        return
    print_document(document)
    if chunks:
        print_chunks(texts)


@group.command("delete")
def delete(
    document_ids: IdsArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    collection: CollectionOption = DEFAULT_COLLECTION,
    tenant: OwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete documents permanently, also while they are processed; asks for confirmation."""
    with opened(queue, config, "documents") as (app, run):
        ids, collection = _named(app, document_ids, collection, tenant)
        if not yes:
            _confirm(len(ids))
        deleted = []
        for document_id in ids:
            try:
                run(app.documents.delete(document_id, collection=collection, tenant=tenant))
            except DocumentNotFound:
                continue  # said below, once the others are deleted
            deleted.append(document_id)
    if as_json:
        print_json({"deleted": deleted})
    else:
        for document_id in deleted:
            say(f"{printable(document_id)}  deleted")
    _complain_of(sorted(set(ids) - set(deleted)), collection)


@group.command("retry")
def retry(
    document_ids: IdsArgument,
    collection: CollectionOption = DEFAULT_COLLECTION,
    tenant: OwnerOption = "default",
    queue: QueueOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Retry failed documents from their originals.

    They are only queued: `penstock worker` or the next `penstock ingest` does the work.
    """
    from penstock.api.attention import live_kinds, worker_command
    from penstock.documents.jobs import PARSE

    with opened(queue, config, "documents") as (app, run):
        ids, collection = _named(app, document_ids, collection, tenant)
        retried = {}
        for document_id in ids:
            try:
                retried[document_id] = run(
                    app.documents.retry(document_id, collection=collection, tenant=tenant)
                )
            except DocumentNotFound:
                continue  # said below, once the others are retried
        worked_on = PARSE in live_kinds(run(app.processes()), app.queue.now())
    if as_json:
        print_json(list(retried.values()))
    else:
        for document in retried.values():
            say(f"{printable(document.id)}  {document.state}")
        if retried and not worked_on:
            note(f"no worker process handles documents; start one: {worker_command(PARSE)}")
    _complain_of([one for one in ids if one not in retried], collection)


def _named(
    app: Penstock, ids: Sequence[str], collection: str, tenant: str
) -> tuple[list[str], str]:
    """Documents, each once, and their collection, as they are stored: what is said of them here is
    masked as they are."""
    refs = [app.documents.ref(one, collection=collection, tenant=tenant) for one in ids]
    return list(dict.fromkeys(ref.id for ref in refs)), refs[0].collection


def _confirm(count: int) -> None:
    """Ask whoever sits at the terminal; Exit when they say no."""
    if not sys.stdin.isatty():
        raise UsageError("deleting cannot be undone; confirm with --yes")
    if not typer.confirm(f"Delete {plural(count, 'document')} for good?", err=True):
        note("nothing deleted")
        raise typer.Exit


def _complain_of(missing: list[str], collection: str) -> None:
    if missing:
        names = ", ".join(map(repr, missing))
        raise NotFound(f"no document {names} in collection {collection!r}")
