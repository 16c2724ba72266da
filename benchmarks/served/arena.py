"""All contenders of one server, measured in turn; what keeps one of them out is told."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders.served import Sender, Served
from benchmarks.processes import WorkerProcess
from benchmarks.report import Better, Cell, Figure, Result, Target
from benchmarks.served.servers import Server
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh


@dataclass(slots=True, frozen=True)
class Run:
    """One contender in an empty place of the server."""

    contender: Served
    url: str
    folder: Path
    settings: Mapping[str, Any]
    sender: Sender

    def worker(self, host: str = "") -> WorkerProcess:
        """Hosts have names. What proves a process dead on one is out of sight of the others."""
        environment = {}
        if host:
            runtime = self.folder / host
            runtime.mkdir()
            environment["XDG_RUNTIME_DIR"] = str(runtime)
        return self.contender.worker(self.url, self.folder, self.settings, environment)


@dataclass(slots=True, frozen=True)
class Arena:
    server: Server
    ours: Served
    peers: list[Served]
    sizes: Sizes
    folder: Path

    @contextmanager
    def run(self, contender: Served, settings: Mapping[str, Any]) -> Iterator[Run]:
        url, folder = self.server.fresh(), fresh(self.folder)
        with contender.sender(url, folder, settings) as sender:
            yield Run(contender, url, folder, settings, sender)

    def cells(self, measure: Callable[[Served], Cell]) -> dict[str, Cell]:
        """Each contender's cell, by name."""
        return {contender.name: _cell(contender, measure) for contender in self._everyone()}

    def figures(self, measure: Callable[[Served], float], rounds: int) -> dict[str, Cell]:
        """Each contender's figure over several rounds, in which they take turns."""
        values: dict[str, list[float]] = {}
        failed: dict[str, Cell] = {}
        for _ in range(rounds):
            for contender in self._everyone():
                if contender.name in failed:
                    continue
                value = _cell(contender, lambda one: Figure.of(one.name, [measure(one)]))
                if isinstance(value, Figure):
                    values.setdefault(contender.name, []).append(value.value)
                else:
                    failed[contender.name] = value
        found: dict[str, Cell] = {name: Figure.of(name, some) for name, some in values.items()}
        return found | failed

    def result(
        self,
        what: str,
        unit: str,
        cells: Mapping[str, Cell],
        better: Better,
        target: Target | None = None,
        note: str = "",
    ) -> Result:
        peers = {peer.name: cells[peer.name] for peer in self.peers}
        ours = cells[self.ours.name]
        title = self.server.title()
        return Result.beside(title, what, unit, ours, peers, better, target, note)

    def _everyone(self) -> list[Served]:
        return [self.ours, *self.peers]


def _cell(contender: Served, measure: Callable[[Served], Cell]) -> Cell:
    """A contender that breaks is a cell that says so, and does not stop the others."""
    if contender.missing:
        return f"not measured: {contender.missing}"
    try:
        return measure(contender)
    except Exception as error:
        traceback.print_exc()
        reason = str(error).strip().splitlines()[-1][:120] if str(error) else repr(error)
        return f"not measured: {reason}"
