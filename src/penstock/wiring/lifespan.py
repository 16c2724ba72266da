"""The app in the lifespan of a web application that is somebody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app import Penstock


def site_lifespan(
    app: Penstock, workers: int | None, kinds: Sequence[str] | None
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """See `Penstock.lifespan`."""

    @asynccontextmanager
    async def lifespan(site: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as entered:
            if workers == 0:
                await entered.enter_async_context(app)
            else:
                await entered.enter_async_context(app.running(kinds=kinds, max_workers=workers))
            for beside in app.beside:
                await entered.enter_async_context(beside())
            yield

    return lifespan
