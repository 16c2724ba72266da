"""`penstock ingest`: adds documents from files, directories, URLs and standard input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import ExitCode, InputError, UsageError
from penstock.cli.options import (
    CollectionOption,
    MetadataOption,
    OwnerOption,
    flag,
    metadata_of,
    option,
)
from penstock.cli.output import note
from penstock.cli.session import Session
from penstock.cli.telemetry import at_work
from penstock.cli.text import printable
from penstock.model.document import DEFAULT_COLLECTION

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Sequence

    from penstock.app import Penstock
    from penstock.cli.folders import Gone
    from penstock.cli.ingest_run import Ingest, IngestOptions
    from penstock.cli.sources import IngestItem

    Items = Callable[[Ingest, asyncio.Event], AsyncIterator[IngestItem | Gone]]


def ingest_documents(
    *,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH|URL|-", help="Files, directories, glob patterns, URLs, or - (stdin)."
        ),
    ],
    collection: CollectionOption = DEFAULT_COLLECTION,
    tenant: OwnerOption = "default",
    document_id: str | None = option("ID", "Id, for a single document.", "--id"),
    title: str = option("TEXT", "Title, if the document has none.", default=""),
    metadata: MetadataOption = None,
    exclude: list[str] | None = option("PATTERN", "Skip these: '*.png'; repeatable."),
    watch: bool = flag("--watch", "Keep running; pick up new and changed files."),
    delete: bool = flag("--delete", "With --watch: delete documents whose file is gone."),
    retry: bool = flag("--retry", "Retry documents that failed and have not changed."),
    no_wait: bool = flag("--no-wait", "Only enqueue; leave the work to other processes."),
    session: Session,
) -> None:
    """Make documents searchable: parse, mask personal data, chunk, embed.

    Workers in this process do the work, together with other worker processes if there are any. Run
    the command again to continue: unchanged documents are skipped, and so are failed ones unless
    --retry is given. Ctrl-C is safe; accepted documents stay in the queue. The exit code is 1 if a
    document failed.

    The id of a file is its path relative to the current directory; the id of a URL is the URL. New
    content under an existing id replaces the old version once it is ready. Directories are read
    recursively, without hidden files and the queue's own. A document whose file is deleted stays
    searchable: see `penstock documents delete`.

    With --watch it runs until Ctrl-C and picks up new and changed files. With --watch --delete, a
    document is deleted when its file is, if it was ingested from these directories into this
    collection by this run or an earlier one. A renamed file is a new document. Nothing is deleted
    while a directory cannot be read or is completely empty: its disk may not be mounted.

    Workers fetch a URL each time it is given, from public addresses only; private ones must be
    listed in the setting fetch_allow. Redirects are followed, and the setting document_bytes
    limits the size.
    """
    import asyncio

    from penstock.cli.ingest_run import IngestOptions

    app = session.app("documents")
    app.documents.check()
    single = len(sources) == 1 and not watch
    if document_id is not None and not (single and not Path(sources[0]).is_dir()):
        raise UsageError("--id is for a single file, address or -")
    given = IngestOptions(collection, tenant, title, metadata_of(metadata), retry)
    if delete and not watch:
        raise UsageError("--delete requires --watch")
    try:
        items = _items(app, sources, document_id, exclude or (), watch=watch, delete=delete)
    except (InputError, UsageError) as error:
        # What is said here may end up in a log, and names of files are as personal as texts.
        raise type(error)(app.documents.masked(str(error))) from None
    if watch and not session.as_json:
        note(f"watching {', '.join(map(printable, sources))}; Ctrl-C to stop")
    wait, ends = not no_wait, not watch
    with at_work("ingest", app.config.logging):
        code = asyncio.run(
            _ingest(app, items, given, wait=wait, ends=ends, as_json=session.as_json)
        )
    raise typer.Exit(code)


def _items(
    app: Penstock,
    sources: Sequence[str],
    document_id: str | None,
    exclude: Sequence[str],
    *,
    watch: bool,
    delete: bool,
) -> Items:
    """List what to ingest. Errors are reported before anything is accepted."""
    from dataclasses import replace

    from penstock.cli.sources import from_address, from_path, from_stdin, is_address

    own = _own_files(app)
    if watch:
        for source in sources:
            if not Path(source).is_dir():
                raise UsageError(f"--watch is for directories, not {source!r}")
        return lambda ingest, stop: _changing(ingest, sources, exclude, own, stop, delete=delete)
    found: dict[str, IngestItem] = {}
    for source in sources:
        if source == "-":
            if document_id is None:
                raise UsageError("standard input needs an --id")
            items = [from_stdin(document_id, app.config.documents.document_bytes)]
        elif is_address(source):
            items = [from_address(source)]
        else:
            items = from_path(source, exclude, own)
        found.update((item.id, item) for item in items)
    if document_id is not None:
        if len(found) > 1:
            raise UsageError(f"--id is for a single document, not {len(found):,}")
        (only,) = found.values()
        found = {document_id: replace(only, id=document_id)}

    async def each(ingest: Ingest, stop: asyncio.Event) -> AsyncIterator[IngestItem | Gone]:
        for item in found.values():
            yield item

    return each


async def _changing(
    ingest: Ingest,
    sources: Sequence[str],
    exclude: Sequence[str],
    own: Sequence[Path],
    stop: asyncio.Event,
    *,
    delete: bool,
) -> AsyncIterator[IngestItem | Gone]:
    """Yield files that appear, change and, if requested, disappear."""
    from penstock.cli.folders import Folders, Gone

    known, name = (await ingest.known(sources), ingest.name) if delete else ([], str)
    trouble = ""
    async for found in Folders(sources, exclude, own, known, name).watch(stop):
        if isinstance(found, InputError):
            if str(found) != trouble:
                note(f"waiting: {printable(ingest.masked(str(found)))}")
            trouble = str(found)
            continue
        trouble = ""
        for one in found:
            if delete or not isinstance(one, Gone):
                yield one


def _own_files(app: Penstock) -> list[Path]:
    """Prefixes of the queue's and the store's own files, which are not documents."""
    import os

    files = [
        url.removeprefix("sqlite:///")
        for url in (app.config.queue, app.config.store)
        if url.startswith("sqlite:///")
    ]
    blobs = app.config.blobs
    files += [blobs] if blobs and "://" not in blobs else []
    return [Path(os.path.abspath(Path(file).expanduser())) for file in files]


async def _ingest(
    app: Penstock, items: Items, given: IngestOptions, *, wait: bool, ends: bool, as_json: bool
) -> int:
    """Accept documents, run the jobs and follow them; returns the exit code."""
    import asyncio
    from contextlib import nullcontext

    from penstock.cli.ingest_run import KINDS, Ingest
    from penstock.cli.ingest_view import IngestTotals, summarise, view_for
    from penstock.cli.stopping import EXIT_SECONDS, Signals, exit_after
    from penstock.cli.worker import working

    signals, tally = Signals(), IngestTotals()
    view = view_for(tally, as_json=as_json, wait=wait)
    ingest = Ingest(app, given, view, tally, signals.stop)
    try:
        async with app:
            async with (
                working(app, [KINDS]) if wait else nullcontext(),
                asyncio.TaskGroup() as group,
            ):
                accepting = group.create_task(ingest.accept(items(ingest, signals.stop)))
                if wait:
                    group.create_task(ingest.follow(accepting))
            if wait:
                await ingest.look()  # what was finished while the workers stopped
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None  # one is enough to say, and has an exit code
    finally:
        view.close()
    interrupted = signals.stop.is_set()
    summarise(tally, as_json=as_json, interrupted=interrupted)
    code = ExitCode.UNSUCCESSFUL if tally.failures else ExitCode.OK
    if interrupted and ends:
        code = ExitCode.INTERRUPTED
    exit_after(EXIT_SECONDS, code)
    return code
