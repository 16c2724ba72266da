"""Services that an app may use beside its queue: documents, research, answers, API keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from penstock.config import Config
from penstock.engine.assembly import Chore
from penstock.engine.orchestrator import JobOrchestrator
from penstock.engine.scope_provider import RequestScopes
from penstock.engine.waiters import LogWaiters
from penstock.errors import ConfigError
from penstock.lanes.registry import LaneRegistry
from penstock.model.job import Job
from penstock.ports.queue import JobQueue

if TYPE_CHECKING:
    from penstock.adapters.sql.store import Store
    from penstock.answers.service import Answers
    from penstock.documents.service import Documents
    from penstock.research.service import Research
    from penstock.wiring.keys import ApiKeys

Service = Literal["documents", "research", "answers", "keys"]


NAMES: dict[Service, str] = {
    "documents": "documents",
    "research": "research tasks",
    "answers": "answers",
    "keys": "API keys",
}
"""What the store would hold, in words."""


class AppServices:
    """The services that an app uses, and the store they share. Each is imported, and its jobs are
    registered, by `use`: most apps use few of them."""

    def __init__(
        self,
        queue: JobQueue,
        config: Config,
        lanes: LaneRegistry,
        job: Callable[..., Callable[[Any], Any]],
        enqueue: Callable[..., Awaitable[Job]],
        logs: LogWaiters,
        orchestrators: Iterable[JobOrchestrator],
        is_open: Callable[[], bool],
    ) -> None:
        self._queue = queue
        self._config = config
        self._lanes = lanes
        self._job = job
        self._enqueue = enqueue
        self._logs = logs
        self._scopes = RequestScopes(queue, config.engine, orchestrators)
        self._is_open = is_open
        self._store: Store | None = None
        self.used: dict[Service, Any] = {}
        """Each after those it uses."""

    def use(self, *services: Service) -> None:
        """See `Penstock.use`."""
        for service in services:
            if service not in NAMES:
                raise ConfigError(f"there is no service {service!r}; there are: {', '.join(NAMES)}")
            self._use(service)

    def _use(self, service: Service) -> Any:
        if service not in self.used:
            if self._is_open():
                raise ConfigError(f'call app.use("{service}") before the app is opened')
            if self._store is None:  # one for all that is in it, so that they share its connections
                from penstock.wiring.stores import choose_store

                self._store = choose_store(self._queue, self._config, NAMES[service])
            self.used[service] = self._built(service, self._store)
        return self.used[service]

    def _built(self, service: Service, store: Store) -> Documents | Research | Answers | ApiKeys:
        queue, config, job, enqueue = self._queue, self._config, self._job, self._enqueue
        match service:
            case "documents":
                from penstock.documents.setup import build_documents

                return build_documents(queue, store, config, job, enqueue, self._logs, self._scopes)
            case "research":
                from penstock.research.setup import build_research

                documents = self._use("documents")
                return build_research(queue, store, documents, config, self._lanes, job, enqueue)
            case "answers":
                from penstock.answers.setup import build_answers

                research, documents = self._use("research"), self._use("documents")
                return build_answers(
                    queue, store, documents, research, config, job, enqueue, self._logs
                )
            case "keys":
                from penstock.wiring.keys import ApiKeys

                return ApiKeys(store.access())

    def _applications(self) -> list[Documents | Research | Answers]:
        return [service for name, service in self.used.items() if name != "keys"]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """All that is used, open; the queue is by now."""
        async with AsyncExitStack() as opened:  # all of it, or nothing
            opened.push_async_callback(self._scopes.close)
            stored = [] if self._store is None else [self._store]
            for part in (*stored, *self._applications()):
                await part.open()
                opened.push_async_callback(part.close)
            yield

    def chores(self, kinds: Container[str]) -> list[Chore]:
        """What a process that works on jobs of these kinds does beside them."""
        return [chore for part in self._applications() for chore in part.chores(kinds)]
