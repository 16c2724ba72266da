"""A queue, opened for the length of one command."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.cli.errors import QueueMissing

if TYPE_CHECKING:
    from penstock.app import Penstock

T = TypeVar("T")
SQLITE = "sqlite:///"


class Run(Protocol):
    """Waits for a coroutine, as asyncio.run does."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


@contextmanager
def opened(
    queue: str | None, config: str | None, *, create: bool = False
) -> Iterator[tuple[Penstock, Run]]:
    """The app and a way to call it. Unless `create`, QueueMissing when there is no queue yet:
    looking at a queue must not make one."""
    import asyncio

    from penstock.app import Penstock

    app = Penstock(queue, config_file=config)
    if not create:
        _check_exists(app.config.queue)
    with asyncio.Runner() as runner:
        runner.run(app.__aenter__())
        try:
            yield app, runner.run
        finally:
            runner.run(app.__aexit__(None, None, None))


def _check_exists(url: str) -> None:
    if not url.startswith(SQLITE):
        return
    path = Path(url[len(SQLITE) :]).expanduser()
    if not path.exists():
        raise QueueMissing(
            f"no queue at {path}; nothing has been enqueued yet. "
            "--queue, PENSTOCK_QUEUE or penstock.yaml name another"
        )
