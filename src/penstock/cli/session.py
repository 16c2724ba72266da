"""Opens a queue for the duration of one command."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.cli.errors import QueueMissing

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.wiring.services import Service

T = TypeVar("T")


class Runner(Protocol):
    """Waits for a coroutine, as asyncio.run does."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


@contextmanager
def opened(
    queue: str | None,
    config: str | None,
    *services: Service,
    create: bool = False,
) -> Iterator[tuple[Penstock, Runner]]:
    """The app, which uses these services, and a way to call it. Unless `create`, QueueMissing when
    there is no queue yet: looking at a queue must not make one."""
    import asyncio

    from penstock.app import Penstock

    app = Penstock(queue, config_file=config).use(*services)
    with asyncio.Runner() as runner:
        if not create and not runner.run(app.queue.exists()):
            place = app.queue.url.removeprefix("sqlite:///")
            raise QueueMissing(
                f"no queue at {place}; nothing has been enqueued yet. "
                "--queue, PENSTOCK_QUEUE or penstock.yaml name another"
            )
        runner.run(app.__aenter__())
        try:
            yield app, runner.run
        finally:
            runner.run(app.__aexit__(None, None, None))
