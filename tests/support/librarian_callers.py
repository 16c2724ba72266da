"""Who asks a librarian, and where that is: here, or in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock import JobOrchestrator, Penstock
from penstock.librarian.client import RemoteLibrarian
from penstock.model.answer import Round
from penstock.model.librarian import LibrarianConfig
from penstock.ports.lanes import LaneInfo
from penstock.ports.librarian import Errand, Librarian
from penstock.ports.provider import ProviderContext
from tests.support.database_servers import free_port
from tests.support.librarians import Diary, ScriptedLibrarian, errand
from tests.support.worker_processes import Farm, WorkerProcess

LONG = 60.0
PAUSED = 30.0
"""Seconds that a busy machine may pause a process for without its being taken for lost."""


@dataclass(slots=True)
class Counter:
    """`librarian` is the one that is asked. With a service, `process` is it."""

    farm: Farm
    app: Penstock
    service: JobOrchestrator
    librarian: Librarian
    diary: Diary
    port: int = 0
    process: WorkerProcess | None = None
    came: list[Round] = field(default_factory=list)
    """Rounds of the last search, as they come."""

    def asking(self, seconds: float = LONG) -> ProviderContext:
        return self.service.asking("acme", self.app.queue.now() + seconds)

    def errand(self, *steps: str, seconds: float = LONG, **options: Any) -> Errand:
        return errand(*steps, ends_at=self.app.queue.now() + seconds, **options)

    async def ask(
        self,
        *steps: str,
        seconds: float = LONG,
        asking: ProviderContext | None = None,
        **options: Any,
    ) -> list[Round]:
        """All rounds of a search. Those that came before an error are in `came`."""
        return await self.run(self.errand(*steps, seconds=seconds, **options), asking)

    async def run(self, errand: Errand, asking: ProviderContext | None = None) -> list[Round]:
        self.came.clear()
        async with aclosing(self.librarian.search(asking or self.asking(), errand)) as rounds:
            async for turn in rounds:
                self.came.append(turn)
        return list(self.came)

    async def lane(self, name: str = "librarian") -> LaneInfo:
        (lane,) = [lane for lane in await self.app.lane_infos() if lane.name == name]
        return lane

    def config(self, **options: Any) -> LibrarianConfig:
        return LibrarianConfig(address=f"127.0.0.1:{self.port}", **options)

    async def serve(self, **options: Any) -> WorkerProcess:
        """Start the service, always on the same port."""
        self.process = await self.farm.run(
            "tests.support.librarian_process",
            {
                "url": self.farm.url,
                "diary": str(self.diary.path),
                "config": {"port": self.port, "keepalive_seconds": PAUSED, **options},
                "settings": self.farm.settings,
            },
        )
        return self.process


@asynccontextmanager
async def counter_at(
    farm: Farm, *, remote: bool, keepalive_seconds: float = PAUSED, **config: Any
) -> AsyncIterator[Counter]:
    farm.settings["lease_seconds"] = PAUSED
    app = farm.bare()
    diary = Diary(farm.folder / "diary.jsonl")
    async with app, AsyncExitStack() as opened:
        service = JobOrchestrator(app.queue, {}, settings=app.config.engine, works=False)
        await service.start()
        opened.push_async_callback(service.stop)
        local = ScriptedLibrarian(diary, app.queue.now)
        counter = Counter(farm, app, service, local, diary)
        if remote:
            counter.port = free_port()
            await counter.serve(**{"keepalive_seconds": keepalive_seconds, **config})
            alive = counter.config(keepalive_seconds=keepalive_seconds)
            there = RemoteLibrarian(alive, app.queue.now)
            opened.push_async_callback(there.close)
            counter.librarian = there
        yield counter
