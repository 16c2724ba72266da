"""Options of every command: the queue, the settings, and JSON or text."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.cli.errors import QueueMissing
from penstock.cli.options import ConfigOption, JsonOption, QueueOption
from penstock.cli.output import note, print_event, print_json, say

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.wiring.services import Service

T = TypeVar("T")


class Runner(Protocol):
    """Runs a coroutine, like asyncio.run."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


@dataclass(slots=True, frozen=True)
class Session:
    """One run of a command."""

    queue: QueueOption = None
    config: ConfigOption = None
    as_json: JsonOption = False

    def app(self, *services: Service) -> Penstock:
        """Create an app without a module, with these services."""
        from penstock.app import Penstock

        return Penstock(self.queue, config_file=self.config).use(*services)

    @contextmanager
    def opened(
        self, *services: Service, create: bool = False, told: bool = False
    ) -> Iterator[tuple[Penstock, Runner]]:
        """Open the app, and yield it with a function to call it. Unless `create`, raises
        QueueMissing if there is no queue yet: a command that only reads must not create one.
        `told`: one that nobody has named is created with a note; it may not be that of the app."""
        import asyncio

        app = self.app(*services)
        with asyncio.Runner() as runner:
            exists = runner.run(app.queue.exists())
            place = app.queue.url.removeprefix("sqlite:///")
            if not create and not exists:
                raise QueueMissing(
                    f"no queue at {place}; nothing has been enqueued yet. "
                    "--queue, PENSTOCK_QUEUE or penstock.yaml name another"
                )
            runner.run(app.__aenter__())
            if told and not exists and app.config.source("queue") == "default":
                note(
                    f"created a new queue, {place}. If your app uses another, name it with "
                    "--queue, PENSTOCK_QUEUE or penstock.yaml"
                )
            try:
                yield app, runner.run
            finally:
                runner.run(app.__aexit__(None, None, None))

    def show(self, value: Any, *lines: str) -> None:
        """Print `value` as JSON, or `lines` for people."""
        if self.as_json:
            print_json(value)
        else:
            for line in lines:
                say(line)

    def tell(self, event: str, text: str, view: Any = None, /, **more: Any) -> None:
        """Report progress: an event as a line of JSON, or `text` on stderr."""
        if self.as_json:
            print_event(event, view, **more)
        else:
            note(text)

    def show_list(
        self,
        found: Sequence[T],
        table: Callable[[Sequence[T]], None],
        nothing: str,
        *,
        line: Callable[[T], Any] | None = None,
        limit: int | None = None,
        cursor: str = "id",
    ) -> None:
        """Print a list: as JSON, each item by `line`; for people as a `table`, or `nothing` on
        stderr. With `limit` items there may be a next page, after the last one's `cursor`."""
        if self.as_json:
            print_json(found if line is None else [line(one) for one in found])
        elif not found:
            note(nothing)
        else:
            table(found)
            if len(found) == limit:
                note(f"there may be more: --before {getattr(found[-1], cursor)}")
