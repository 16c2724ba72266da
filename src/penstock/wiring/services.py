"""Builds the services of an app lazily: most apps use few of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from penstock.config import Config
from penstock.engine.assembly import Chore
from penstock.engine.request_scopes import RequestScopes
from penstock.engine.waiters import LogWaiters
from penstock.errors import ConfigError
from penstock.lanes.registry import LaneRegistry
from penstock.model.job import Job
from penstock.ports.access import AccessStore
from penstock.ports.queue import JobQueue
from penstock.ports.store import Store

if TYPE_CHECKING:
    from penstock.answers.service import Answers
    from penstock.documents.service import Documents
    from penstock.research.service import Research


class AppServices:
    """The applications of an app, and the store they share. Asking for one registers its jobs;
    ConfigError once they are open."""

    def __init__(
        self,
        queue: JobQueue,
        config: Config,
        lanes: LaneRegistry,
        job: Callable[..., Callable[[Any], Any]],
        enqueue: Callable[..., Awaitable[Job]],
        logs: LogWaiters,
        visitors: RequestScopes,
    ) -> None:
        self._queue = queue
        self._config = config
        self._lanes = lanes
        self._job = job
        self._enqueue = enqueue
        self._logs = logs
        self._visitors = visitors
        self._open = False
        self._store: Store | None = None
        self._library: Documents | None = None
        self._research: Research | None = None
        self._answers: Answers | None = None
        self._access: AccessStore | None = None

    @property
    def documents(self) -> Documents:
        if self._library is None:
            from penstock.documents.setup import open_library

            self._refuse_late("app.documents")
            config = self._config
            self._library = open_library(
                self._queue,
                self._store_for("documents"),
                config.settings,
                config.embedder,
                config.names,
                config.llm,
                self._job,
                self._enqueue,
                self._logs,
                self._visitors,
                passed_on=config.kafka.produce is not None,
            )
        return self._library

    @property
    def research(self) -> Research:
        if self._research is None:
            from penstock.research.setup import open_research

            self._refuse_late("app.research")
            self._research = open_research(
                self._queue,
                self._store_for("research tasks"),
                self.documents,
                self._config,
                self._lanes,
                self._job,
                self._enqueue,
            )
        return self._research

    @property
    def answers(self) -> Answers:
        if self._answers is None:
            from penstock.answers.setup import open_answers

            self._refuse_late("app.answers")
            self._answers = open_answers(
                self._queue,
                self._store_for("answers"),
                self.documents,
                self.research,
                self._config,
                self._job,
                self._enqueue,
                self._logs,
            )
        return self._answers

    @property
    def access(self) -> AccessStore:
        if self._access is None:
            self._refuse_late("app.access")
            self._access = self._store_for("API keys").access()
        return self._access

    def _refuse_late(self, what: str) -> None:
        if self._open:
            raise ConfigError(f"ask for {what} before the app is opened")

    def _store_for(self, what: str) -> Store:
        """One for all that is in it, so that they share its connections."""
        if self._store is None:
            from penstock.wiring.stores import choose_store

            self._store = choose_store(self._queue, self._config.settings, what)
        return self._store

    def _applications(self) -> list[Documents | Research | Answers]:
        """Those that were asked for, each after what it uses."""
        parts = (self._library, self._research, self._answers)
        return [part for part in parts if part is not None]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """All that was asked for, open; the queue is by now."""
        async with AsyncExitStack() as opened:  # all of it, or nothing
            stored = [] if self._store is None else [self._store]
            for part in (*stored, *self._applications()):
                await part.open()
                opened.push_async_callback(part.close)
            self._open = True
            try:
                yield
            finally:
                self._open = False

    def chores(self, kinds: Container[str]) -> list[Chore]:
        """What a process that works on jobs of these kinds does beside them."""
        return [chore for part in self._applications() for chore in part.chores(kinds)]
