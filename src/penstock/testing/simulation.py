"""Simulates an app: worker processes, a client, and faults, all of it decided by a seed."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from penstock import runtime
from penstock.app import Penstock
from penstock.errors import ConfigError
from penstock.model.job import Job
from penstock.testing.faults import (
    FAILOVER_SECONDS,
    IN_FILE,
    ON_SERVER,
    FaultKind,
    InjectedFault,
    draw_faults,
)
from penstock.testing.history import told
from penstock.testing.loop import SimulatedProcess, Stuck, current
from penstock.testing.machine import Machine, Rows, scratch_folder
from penstock.testing.model import ReferenceModel
from penstock.testing.receipts import watched
from penstock.testing.recording import RecordingQueue
from penstock.testing.server import Network, ServerQueue

FAULT_SECONDS = 10.0
"""Faults happen within this time."""
RECOVERY_SECONDS = 90.0
"""After the last fault, everything has to be done within this time."""

LATE = f"not all was done {RECOVERY_SECONDS:g} s after the last fault"
SLOT_SECONDS = 10.0
"""After all is done, slots are given back within this time and two leases."""
MOST_OFF = 30.0
"""Seconds by which the clock of a host is off, where the queue is on a server."""
COLLECT_EVERY = 10
"""Seeds after which garbage is collected."""
RESTART_SECONDS = 0.5
"""How long it takes to start a process again that died of itself."""
AHEAD = 3.0
"""How far the clock is set ahead for each second that this lasts."""

Scenario = Callable[[Penstock], Awaitable[None]]
Check = Callable[[list[Job]], None]
Respond = Callable[[httpx2.Request], httpx2.Response]


class SimulationFailed(AssertionError):
    """A seed under which an app does what it must not do."""

    def __init__(
        self, seed: int, faults: Sequence[InjectedFault], found: Sequence[str], told: str
    ) -> None:
        self.seed = seed
        self.faults = faults
        self.found = found
        text = [f"seed {seed}: {found[0]}", *(f"  also: {more}" for more in found[1:])]
        text += ["faults that it takes:", *(f"  {fault}" for fault in faults or ("none",))]
        text += ["history:", told, f"replay it: simulate(..., seeds=[{seed}])"]
        super().__init__("\n".join(text))


@dataclass(slots=True, frozen=True)
class SimulationReport:
    """The seeds that were tried, and what happened in them."""

    seeds: int
    faults: int
    jobs: int
    steps: int
    """Callbacks that were run."""


@dataclass(slots=True, eq=False)
class _Replica:
    """A copy of the server that has fallen behind."""

    rows: Rows
    model: dict[str, Any]
    """What the reference model knew when they were stored."""


class Simulation:
    """One run of an app under one seed."""

    def __init__(
        self,
        app: Penstock,
        scenario: Scenario,
        seed: int,
        folder: Path,
        *,
        faults: Sequence[InjectedFault],
        workers: int,
        check: Check | None,
        respond: Respond | None,
        server: bool,
    ) -> None:
        self._app = app
        self._scenario = scenario
        self.seed = seed
        self.machine = Machine(seed, folder, self._restart, server=server)
        self.network = Network(self.machine)
        self._begun = self.machine.loop.clock
        self.model = ReferenceModel(
            self._time,
            self.machine.processes,
            bool(app.config.tenant_weights),
            now=self.machine.server_time,
            server=server,
        )
        self.machine.connection.committed = self.model.commit
        self.lines: list[tuple[float, str]] = []
        """What happened beside the jobs: faults, processes, errors."""
        self.faults = faults
        self._check = check
        self._respond = respond
        self._lease_seconds = app.config.engine.lease_seconds
        self._workers: list[SimulatedProcess | None] = [None] * workers
        self._started = 0
        self._outage = (0.0, 0)
        """Until when dependencies fail, and in which way."""
        self._replicas: list[_Replica] = []
        """Those that have fallen behind."""
        self._failovers = 0
        self._over = False
        """Everything is done; there is nothing left that a failover could undo."""

    def run(self) -> list[str]:
        """Run it to its end; what was wrong, in words."""
        machine, loop = self.machine, self.machine.loop
        with machine.running(), _replaced_transport(self), watched(self.model.receipts):
            computer = machine.process("computer")
            for fault in self.faults:
                at = self._begun + fault.at
                loop.call_at(at, self._happen, fault, context=computer.context)
            for number in range(len(self._workers)):
                self._start_worker(number)
            client = machine.process("client")
            client.faulty = False
            self._place(client, "host of the client")
            done = loop.start(client, self._client())
            wrong = self.model.wrong
            try:
                over = loop.run_until(
                    lambda: bool(wrong) or done.done(), loop.clock + self._longest()
                )
                found = [*wrong, *self.model.lost()]
                if not wrong:
                    unfinished = self._unfinished()
                    found += unfinished
                    found += self._result_of(done) if over else [LATE]
                    if not unfinished:
                        found += self._slots_left() + self._away()
            except Stuck as error:
                found = [*wrong, *self.model.lost(), str(error)]
            found += [f"{told.get('message')}: {told.get('exception')!r}" for told in loop.errors]
        return found

    def _longest(self) -> float:
        """Seconds until all has to be done."""
        last = max((fault.at + fault.seconds for fault in self.faults), default=0.0)
        return last + RECOVERY_SECONDS

    def close(self) -> None:
        with self.machine.running():
            self.machine.close()

    def told(self) -> str:
        """What happened, in lines."""
        return told(self.lines, self.model.changes)

    def note(self, text: str) -> None:
        """Put a line into the history."""
        self.lines.append((self._time(), f"{current.get()}: {text}"))

    def _time(self) -> float:
        return self.machine.loop.clock - self._begun

    def _result_of(self, done: asyncio.Task[Any]) -> list[str]:
        error = done.exception()
        if error is None:
            return []
        self.lines.append((self._time(), f"client: {error!r}"))
        return [f"{type(error).__name__}: {error}"]

    def _unfinished(self) -> list[str]:
        ticking = [kind for kind, one in self._app.handlers.items() if one.periodic is not None]
        rows = self.model.unfinished(besides=ticking)  # there is always a next tick
        if not rows:
            return []
        first = rows[0]
        what = f"{first.id} ({first.kind}) is {first.state}"
        if first.kind not in self._app.handlers:
            return [f"{what}: no handler is registered for {first.kind!r}"]
        at = f" by process {first.holder}" if first.holder else ""
        why = self.model.stuck(first)
        return [f"{len(rows)} jobs are not finished: {what}{at}: {why}"]

    def _slots_left(self) -> list[str]:
        """When all is done, slots are given back, if only by who takes over from the dead."""
        loop = self.machine.loop
        gone = loop.run_until(
            lambda: not self.model.slots_left(), loop.clock + 2 * self._lease_seconds + SLOT_SECONDS
        )
        return [] if gone else [f"slots of {self.model.slots_left()} were never given back"]

    def _away(self) -> list[str]:
        """When all is done, whoever lives is a member, if only once it has joined again."""

        def away() -> list[SimulatedProcess]:
            there = [one for one in self._workers if one is not None and one.alive]
            return self.model.away(there)

        loop = self.machine.loop
        joined = loop.run_until(lambda: not away(), loop.clock + self._longest_join())
        return [] if joined else [f"{away()[0]} has not joined again"]

    def _longest_join(self) -> float:
        last = max((fault.at + fault.seconds for fault in self.faults), default=0.0)
        return max(0.0, last - self._time()) + 2 * self._lease_seconds + SLOT_SECONDS

    async def _client(self) -> None:
        app = self._app_of_process()
        wait = app.wait

        async def wait_and_tell(job_id: str, timeout: float | None = None) -> Job:
            since = self._time()
            job = await wait(job_id, timeout)
            self.model.tell(job_id, since)
            return job

        app.wait = wait_and_tell  # type: ignore[method-assign]
        async with app:
            await app.apply_lanes()
            await self._scenario(app)
            jobs = await self._finished(app)
            if self._check is not None:
                self._check(jobs)

    async def _finished(self, app: Penstock) -> list[Job]:
        """All jobs, once they have finished, and no failover has made them unfinished since."""
        while True:
            failovers = self._failovers
            await app.drain()
            jobs = await app.jobs(limit=1000)
            if failovers == self._failovers and not self._replicas:
                self._over = True
                return jobs
            await asyncio.sleep(RESTART_SECONDS)

    def _app_of_process(self) -> Penstock:
        app = self._app
        options: dict[str, Any] = {
            "weights": app.config.tenant_weights,
            "lane_config": app.lanes.config,
            "ageing_seconds": app.config.engine.ageing_seconds,
            "retention_seconds": app.config.engine.retention_seconds,
        }
        if self.machine.server:
            return app.on_queue(ServerQueue(self.machine, self.model, self.network, **options))
        return app.on_queue(RecordingQueue(self.machine, self.model, **options))

    # Worker processes, and what happens to them.

    def _start_worker(self, number: int) -> None:
        self._started += 1
        process = self.machine.process(f"worker {number + 1} (start {self._started})")
        self._place(process, f"host {number + 1}")
        self._workers[number] = process
        self.machine.loop.start(process, self._work())

    def _place(self, process: SimulatedProcess, host: str) -> None:
        """With a queue on a server, all are on hosts of their own, with clocks that are off."""
        if self.machine.server:
            process.host = host
            process.clock_offset = self.machine.chance.uniform(-MOST_OFF, MOST_OFF)

    async def _work(self) -> None:
        stop = asyncio.Event()
        current.get().stop = stop
        while True:
            try:
                async with self._app_of_process().running():
                    await stop.wait()
                return
            except ConfigError:
                raise
            except Exception as error:
                self.note(f"cannot work: {error!r}")
                await asyncio.sleep(1.0)  # whoever supervises it starts it again

    def _happen(self, fault: InjectedFault) -> None:
        machine, loop = self.machine, self.machine.loop
        self.note(str(fault))
        number = fault.process % len(self._workers)
        worker = self._workers[number]
        self._disturb(fault, worker)
        until = loop.clock + fault.seconds
        match fault.kind:
            case FaultKind.CRASH if worker is not None:
                self._workers[number] = None
                worker.steps_left = fault.steps
                loop.call_later(fault.seconds, self._replace, number, worker)
            case FaultKind.STOP if worker is not None and worker.stop is not None:
                self._workers[number] = None
                worker.stop.set()
                loop.call_later(fault.seconds, self._replace, number, None)
            case FaultKind.FREEZE if worker is not None:
                loop.freeze(worker, fault.seconds)
            case FaultKind.CLIENT_FREEZE:
                client = next(one for one in machine.processes if one.name == "client")
                loop.freeze(client, fault.seconds)
            case FaultKind.SLOW_DISK:
                machine.slow_until = until
            case FaultKind.FULL_DISK:
                machine.full_until = until
            case FaultKind.LOST_WAKEUPS:
                machine.wakeups_lost = 0.5
                loop.call_later(fault.seconds, self._mend_wakeups)
            case FaultKind.CLOCK_JUMP if machine.server:
                if worker is not None:
                    worker.clock_offset += AHEAD * fault.seconds
            case FaultKind.CLOCK_JUMP:
                machine.clock_jump += AHEAD * fault.seconds
                loop.call_later(fault.seconds, self._set_clock_back, AHEAD * fault.seconds)
            case FaultKind.CLOCK_SET_BACK:
                machine.clock_jump -= fault.seconds
            case FaultKind.OUTAGE:
                self._outage = (until, fault.steps)
            case FaultKind.LOST_REQUESTS:
                self.network.lost, self.network.doubled = 0.2, 0.2
                loop.call_later(fault.seconds, self._mend_network)
            case FaultKind.LATE_REQUESTS:
                self.network.late_until = until
            case FaultKind.CUT if worker is not None:
                self.network.cut[worker] = until
            case FaultKind.SERVER_RESTART:
                self.network.connections += 1
                self.network.down_until = max(self.network.down_until, until)
            case FaultKind.FAILOVER if not self._over:
                replica = _Replica(machine.connection.copy(), self.model.copy())
                self._replicas.append(replica)
                loop.call_later(min(fault.seconds, FAILOVER_SECONDS), self._fail_over, replica)
            case _:
                """The process is not there."""

    def _disturb(self, fault: InjectedFault, worker: SimulatedProcess | None) -> None:
        """Tell the model what may be late now, and whose lease may be lost."""
        model, lease = self.model, self._lease_seconds
        over = self._time() + fault.seconds + 2 * lease
        match fault.kind:
            case FaultKind.FREEZE:
                model.excuse(worker, over)
            case FaultKind.FULL_DISK:
                model.excuse(None, over)
            case FaultKind.CUT:
                model.excuse(worker, over)
            case (
                FaultKind.LOST_REQUESTS
                | FaultKind.LATE_REQUESTS
                | FaultKind.SERVER_RESTART
                | FaultKind.FAILOVER
            ):
                model.excuse(None, over)
        model.disturb(over)

    def _restart(self, dead: SimulatedProcess) -> None:
        """Whoever supervises a process that died of itself starts it again."""
        if dead in self._workers:
            number = self._workers.index(dead)
            self._workers[number] = None
            self.lines.append((self._time(), f"{dead}: died"))
            self.model.disturb(self._time() + RESTART_SECONDS + 2 * self._lease_seconds)
            loop = self.machine.loop
            context = self.machine.processes[0].context  # the computer's
            loop.call_later(RESTART_SECONDS, self._replace, number, None, context=context)

    def _replace(self, number: int, dying: SimulatedProcess | None) -> None:
        if dying is not None and dying.alive:
            self.machine.loop.kill(dying)  # it had nothing to do, and died of it
        self._start_worker(number)

    def _mend_network(self) -> None:
        self.network.lost = self.network.doubled = 0.0

    def _fail_over(self, replica: _Replica) -> None:
        """It takes over, with no more than it has; the others follow it from now on."""
        self.note("the replica takes over")
        self._replicas.remove(replica)
        self._failovers += 1
        for other in self._replicas:
            other.rows, other.model = replica.rows, replica.model
        self.machine.connection.restore(replica.rows)
        self.model.rewind(replica.model)
        self.network.connections += 1
        self.network.down_until = self.machine.loop.clock + RESTART_SECONDS

    def _mend_wakeups(self) -> None:
        self.machine.wakeups_lost = 0.0

    def _set_clock_back(self, seconds: float) -> None:
        self.machine.clock_jump -= seconds

    # The outside.

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        """What a request of a handler is answered with."""
        chance = self.machine.chance
        await asyncio.sleep(chance.uniform(0.001, 0.2))
        until, way = self._outage
        if self.machine.loop.clock < until:
            match way % 6:
                case 0:
                    return httpx2.Response(503)
                case 1:
                    return httpx2.Response(429, headers={"Retry-After": "1"})
                case 2:
                    return httpx2.Response(200, text="<html>nonsense</html>")
                case 3:
                    await asyncio.sleep(chance.uniform(1.0, 5.0))  # late, and good
                case 4:
                    await asyncio.sleep(until - self.machine.loop.clock)
                    raise httpx2.ReadError("simulated outage", request=request)
                case _:
                    raise httpx2.ConnectError("simulated outage", request=request)
        if self._respond is None:
            return httpx2.Response(200, json={})
        return self._respond(request)


def crash() -> None:
    """Kill the process that the caller runs in, at its next callback. In a simulation only: for
    a handler that takes its process with it."""
    current.get().steps_left = 0


@contextmanager
def _replaced_transport(simulation: Simulation) -> Iterator[None]:
    transport = httpx2.MockTransport(simulation.answer)
    with runtime.replaced(http_transport=lambda: transport):
        yield


def simulate(
    app: Penstock,
    scenario: Scenario,
    *,
    seeds: int | Iterable[int] = 1000,
    workers: int = 2,
    faults: Collection[FaultKind] | None = None,
    server: bool = False,
    check: Check | None = None,
    reset: Callable[[], None] | None = None,
    respond: Respond | None = None,
    shrink: bool = True,
) -> SimulationReport:
    """Run an app under each of these seeds, and raise SimulationFailed for the first that breaks
    a promise.

    `scenario` enqueues what is to be done, in a process of its own. `workers` processes run the
    jobs on a virtual clock, under `faults` that the seed decides. When all jobs are finished,
    `check` is given them, and raises AssertionError for what must not be. `reset` is called before
    each seed, to clear what the handlers keep in memory. `respond` answers the requests that
    handlers make with `ctx.http`. With `server` the queue is on a server, behind a network, and
    each process on a host of its own; else they share a file. With `shrink` the faults that a
    failure does not take are left out of what is told.
    """
    if faults is None:
        faults = frozenset(FaultKind) - (IN_FILE if server else ON_SERVER)
    if any(handler.built_in for handler in app.handlers.values()):
        raise ConfigError("services cannot be simulated: give `simulate` an app without `use(...)`")
    tried = happened = jobs = steps = 0
    with scratch_folder() as scratch, _quiet():

        def attempt(
            seed: int, faults: Sequence[InjectedFault], *, tell: bool = False
        ) -> SeedResult:
            if reset is not None:
                reset()
            folder = Path(tempfile.mkdtemp(dir=scratch))
            simulation = Simulation(
                app,
                scenario,
                seed,
                folder,
                faults=faults,
                workers=workers,
                check=check,
                respond=respond,
                server=server,
            )
            try:
                found = simulation.run()
                accepted = len(simulation.model.accepted)
                text = simulation.told() if tell and found else ""
                return SeedResult(found, accepted, simulation.machine.loop.steps, text)
            finally:
                simulation.close()
                shutil.rmtree(folder)

        for seed in range(seeds) if isinstance(seeds, int) else seeds:
            drawn = draw_faults(seed, faults, FAULT_SECONDS)
            outcome = attempt(seed, drawn, tell=not shrink)
            if outcome.found:
                taken = drawn
                if shrink:
                    taken = _fewest(drawn, partial(attempt, seed))
                    outcome = attempt(seed, taken, tell=True)
                raise SimulationFailed(seed, taken, outcome.found, outcome.told)
            tried += 1
            if tried % COLLECT_EVERY == 0:
                gc.collect()
            happened += len(drawn)
            jobs += outcome.jobs
            steps += outcome.steps
    return SimulationReport(tried, happened, jobs, steps)


class SeedResult(NamedTuple):
    """The result of one simulation."""

    found: list[str]
    jobs: int
    steps: int
    told: str


def _fewest(
    faults: Sequence[InjectedFault], attempt: Callable[[Sequence[InjectedFault]], SeedResult]
) -> list[InjectedFault]:
    """Leave out the faults that it does not take."""
    kept = list(faults)
    for fault in faults:
        fewer = [one for one in kept if one is not fault]
        if attempt(fewer).found:
            kept = fewer
    return kept


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the log of simulated processes to themselves, and the garbage collector out of their
    way: it looks again and again at what lives until the end of a seed."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    collects = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if collects:
            gc.enable()
        logging.disable(before)
