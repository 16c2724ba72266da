"""The port to a search provider: a query in, pages of findings out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from penstock.model.finding import FindingsPage
from penstock.ports.lanes import ErrorReports
from penstock.ports.receipts import Receipts

if TYPE_CHECKING:
    import httpx2

    from penstock.model.amounts import AmountValue
    from penstock.ports.bill import Bill


class Http(Protocol):
    """The HTTP client of a provider: `ctx.http` of the job it is asked in."""

    async def get(
        self,
        url: str,
        *,
        lane: str | None = None,
        max_bytes: int = ...,
        patience: float | None = ...,
        record: bool | str = ...,
        amount: AmountValue | Bill | None = ...,
        **options: Any,
    ) -> httpx2.Response: ...

    async def post(
        self,
        url: str,
        *,
        lane: str | None = None,
        max_bytes: int = ...,
        patience: float | None = ...,
        record: bool | str = ...,
        amount: AmountValue | Bill | None = ...,
        **options: Any,
    ) -> httpx2.Response: ...

    def stream(
        self,
        method: str,
        url: str,
        *,
        lane: str | None = None,
        max_bytes: int = ...,
        silence: float | None = None,
        patience: float | None = ...,
        amount: AmountValue | Bill | None = ...,
        **options: Any,
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


class ProviderLanes(Protocol):
    """Permits for a provider that makes requests in its own way."""

    def request(
        self, name: str, *, patience: float | None = ..., bill: Bill | None = ...
    ) -> AbstractAsyncContextManager[None]: ...

    def counts(self, name: str) -> bool:
        """Whether what an answer tells matters to the lane: its use of tokens, or its headers."""
        ...

    @property
    def reports(self) -> ErrorReports: ...


class ProviderContext(Protocol):
    """On whose behalf somebody is asked: a job's context is one, a visit to a service another."""

    @property
    def http(self) -> Http: ...

    @property
    def lanes(self) -> ProviderLanes: ...

    @property
    def receipts(self) -> Receipts: ...

    @property
    def tenant(self) -> str: ...

    def remaining(self) -> float:
        """Seconds left until the deadline, never below 0."""
        ...


class SearchProvider(Protocol):
    """Somebody who can be asked for what has been published.

    Every request takes its own permit, in the provider's lane. Raises what `ctx.http` raises;
    ProviderError when the answer is not what the provider documents; ValidationError for a query
    that cannot be asked; ConfigError where a key is wanted and its variable is not set.
    """

    @property
    def name(self) -> str: ...

    @property
    def lane(self) -> str: ...

    def search(
        self, asking: ProviderContext, query: str, limit: int, start: str | None = None
    ) -> AsyncGenerator[FindingsPage, None]:
        """Pages as they come, `limit` findings in all at most. `start` is the `next` of an earlier
        page: what was found before an error, or before the lane got busy, is not asked for again.
        """
