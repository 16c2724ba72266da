"""`penstock documents`: list, show, delete, retry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import NotFound
from penstock.cli.options import (
    CollectionOption,
    LimitOption,
    OwnerOption,
    YesOption,
    confirm,
    flag,
    need_terminal,
    new_group,
    option,
)
from penstock.cli.output import note, print_json
from penstock.cli.session import Session
from penstock.cli.text import plural, printable
from penstock.errors import DocumentNotFound
from penstock.model.document import DEFAULT_COLLECTION, DocumentState

if TYPE_CHECKING:
    from penstock.app import Penstock

group = new_group("List, show, delete and retry documents.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Document id.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID", help="Document ids.")]


@group.command("list")
def list_documents(
    *,
    state: list[DocumentState] | None = option(
        "STATE", "processing, completed or failed; repeatable."
    ),
    collection: str | None = option("NAME", "Only this collection."),
    tenant: OwnerOption = "default",
    limit: LimitOption = 50,
    before: int | None = option("GENERATION", "Next page: documents older than this.", min=1),
    session: Session,
) -> None:
    """List documents, most recently accepted first."""
    from penstock.cli.document_view import print_documents

    with session.opened("documents") as (app, run):
        found = run(
            app.documents.documents(
                tenant=tenant,
                collection=collection,
                states=state or None,
                limit=limit,
                before=before,
            )
        )
    nothing = "no documents match" if state or collection or before else "no documents"
    session.show_list(found, print_documents, nothing, limit=limit, cursor="generation")


@group.command("show")
def show(
    *,
    document_id: IdArgument,
    chunks: bool = flag("--chunks", "Include the indexed text, with page numbers."),
    collection: CollectionOption = DEFAULT_COLLECTION,
    tenant: OwnerOption = "default",
    session: Session,
) -> None:
    """Show a document in full: progress, masked data, and errors."""
    from penstock.cli.document_view import print_chunks, print_document
    from penstock.wire.view import fields_of

    with session.opened("documents") as (app, run):
        document = run(app.documents.get(document_id, collection=collection, tenant=tenant))
        texts = []
        if chunks:
            texts = run(app.documents.chunks(document_id, collection=collection, tenant=tenant))
    if session.as_json:
        parts = {"texts": texts} if chunks else {}
        print_json({**fields_of(document), **parts})
        return
    print_document(document)
    if chunks:
        print_chunks(texts)


@group.command("delete")
def delete(
    *,
    document_ids: IdsArgument,
    yes: YesOption = False,
    collection: CollectionOption = DEFAULT_COLLECTION,
    tenant: OwnerOption = "default",
    session: Session,
) -> None:
    """Delete documents permanently, also while they are processed; asks for confirmation."""
    with session.opened("documents") as (app, run):
        ids, collection = _named(app, document_ids, collection, tenant)
        if not yes:
            need_terminal("deleting")
            confirm(f"Delete {plural(len(ids), 'document')} for good?", "nothing deleted")
        deleted = []
        for document_id in ids:
            try:
                run(app.documents.delete(document_id, collection=collection, tenant=tenant))
            except DocumentNotFound:
                continue  # said below, once the others are deleted
            deleted.append(document_id)
    session.show({"deleted": deleted}, *(f"{printable(one)}  deleted" for one in deleted))
    _complain_of(sorted(set(ids) - set(deleted)), collection)


@group.command("retry")
def retry(
    *,
    document_ids: IdsArgument,
    collection: CollectionOption = DEFAULT_COLLECTION,
    tenant: OwnerOption = "default",
    session: Session,
) -> None:
    """Retry failed documents from their originals.

    They are only queued: `penstock worker` or the next `penstock ingest` does the work.
    """
    from penstock.api.attention import live_kinds, worker_command
    from penstock.documents.jobs import PARSE

    with session.opened("documents") as (app, run):
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
    found = list(retried.values())
    session.show(found, *(f"{printable(one.id)}  {one.state}" for one in found))
    if retried and not worked_on and not session.as_json:
        note(f"no worker process handles documents; start one: {worker_command(PARSE)}")
    _complain_of([one for one in ids if one not in retried], collection)


def _named(
    app: Penstock, ids: Sequence[str], collection: str, tenant: str
) -> tuple[list[str], str]:
    """Resolve documents and their collection to the stored names, without duplicates: output about
    them is masked like them."""
    refs = [app.documents.ref(one, collection=collection, tenant=tenant) for one in ids]
    return list(dict.fromkeys(ref.id for ref in refs)), refs[0].collection


def _complain_of(missing: list[str], collection: str) -> None:
    if missing:
        names = ", ".join(map(repr, missing))
        raise NotFound(f"no document {names} in collection {collection!r}")
