"""Services that an app may use beside its queue: documents, research, answers, API keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from penstock.config import Config
from penstock.engine.assembly import Chore
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

S = TypeVar("S")

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
        scopes: RequestScopes,
    ) -> None:
        self._queue = queue
        self._config = config
        self._lanes = lanes
        self._job = job
        self._enqueue = enqueue
        self._logs = logs
        self._scopes = scopes
        self._open = False
        self._store: Store | None = None
        self._documents: Documents | None = None
        self._research: Research | None = None
        self._answers: Answers | None = None
        self._keys: ApiKeys | None = None

    @property
    def documents(self) -> Documents:
        return _used("documents", self._documents)

    @property
    def research(self) -> Research:
        return _used("research", self._research)

    @property
    def answers(self) -> Answers:
        return _used("answers", self._answers)

    @property
    def keys(self) -> ApiKeys:
        return _used("keys", self._keys)

    def use(self, *services: Service) -> None:
        """See `Penstock.use`."""
        build: dict[str, Callable[[], object]] = {
            "documents": self._use_documents,
            "research": self._use_research,
            "answers": self._use_answers,
            "keys": self._use_keys,
        }
        for service in services:
            if service not in build:
                known = ", ".join(build)
                raise ConfigError(f"there is no service {service!r}; there are: {known}")
            build[service]()

    def _use_documents(self) -> Documents:
        if self._documents is None:
            store = self._store_for("documents")
            from penstock.documents.setup import build_documents

            self._documents = build_documents(
                self._queue,
                store,
                self._config,
                self._job,
                self._enqueue,
                self._logs,
                self._scopes,
            )
        return self._documents

    def _use_research(self) -> Research:
        if self._research is None:
            store = self._store_for("research")
            from penstock.research.setup import build_research

            self._research = build_research(
                self._queue,
                store,
                self._use_documents(),
                self._config,
                self._lanes,
                self._job,
                self._enqueue,
            )
        return self._research

    def _use_answers(self) -> None:
        if self._answers is None:
            store = self._store_for("answers")
            from penstock.answers.setup import build_answers

            research = self._use_research()
            self._answers = build_answers(
                self._queue,
                store,
                self._use_documents(),
                research,
                self._config,
                self._job,
                self._enqueue,
                self._logs,
            )

    def _use_keys(self) -> None:
        if self._keys is None:
            store = self._store_for("keys")
            from penstock.wiring.keys import ApiKeys

            self._keys = ApiKeys(store.access())

    def _store_for(self, service: Service) -> Store:
        """One for all that is in it, so that they share its connections."""
        if self._open:
            raise ConfigError(f'call app.use("{service}") before the app is opened')
        if self._store is None:
            from penstock.wiring.stores import choose_store

            self._store = choose_store(self._queue, self._config, NAMES[service])
        return self._store

    def _applications(self) -> list[Documents | Research | Answers]:
        """Those that are used, each after what it uses."""
        parts = (self._documents, self._research, self._answers)
        return [part for part in parts if part is not None]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """All that is used, open; the queue is by now."""
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


def _used(name: Service, service: S | None) -> S:
    if service is None:
        raise ConfigError(
            f'this app does not use {name}: call app.use("{name}") before it is opened'
        )
    return service
