"""The reference model of a simulation: what a queue may do, judged commit by commit.

It is told of every change in the order of the commits (see `rows`), and of what processes do
beside the queue: what they send, what they begin, what they are told. Whatever must not be is put
into `wrong`, in words, and ends the simulation there.

Bounds in time count only from when the last fault was over: before, a promise may have to wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from math import inf
from typing import Any, NamedTuple

from penstock.lanes.state import QUESTIONS
from penstock.model.job import DEFAULT_MAX_RETRIES, Job
from penstock.ports.lanes import News
from penstock.ports.queue import Lease, Outcome, Settlement
from penstock.ports.steps import END_HASH, WAIT_HASH, signal_wait
from penstock.testing.loop import SimulatedProcess
from penstock.testing.receipts import ReceiptBook
from penstock.testing.rows import (
    JobGone,
    JobRow,
    LaneRow,
    MemberGone,
    MemberRow,
    RowChange,
    SignalGone,
    SignalRow,
    SlotFreed,
    SlotRow,
    StepGone,
    StepRecord,
)

FINAL = ("completed", "failed", "cancelled")
LEGAL = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("queued", "failed"),  # overdue
    ("running", "queued"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("failed", "queued"),  # redriven
}
STORED_AS = {
    "completed": (Outcome.COMPLETED,),
    "failed": (Outcome.FAILED,),
    # A failure may turn out to be the lane's: then the job waits.
    "queued": (
        Outcome.RETRY,
        Outcome.RELEASED,
        Outcome.SUSPENDED,
        Outcome.HANDED_BACK,
        Outcome.FAILED,
    ),
}

TOLD_SECONDS = 3.0
"""Whoever waits for a job is told of its end within this time; lost wake-ups cost one second."""
CANCEL_SECONDS = 3.0
"""A run is over, and none is begun, so long after its job was cancelled."""
CASCADE_SECONDS = 5.0
"""No child is begun, or completed, so long after its parent was cancelled."""
WAIT_SECONDS = 25.0
"""A job that needs no lane is begun within this time of when it could be, or of when the one before
it in its tenant's line was: whoever has enqueued a hundred waits for a hundred."""
IDLE_SECONDS = 0.6
"""A job that needs no lane does not wait longer while a process has nothing at all to do. Who polls
finds it within a second, so that a wake-up is needed."""
ASKS, ASKS_SECONDS = 60, 3.0
"""A process does not ask so often within this time while nothing changes, and is given nothing."""
ASLEEP_SECONDS = 5.0
"""A job that waits for a signal, and has it, is not put off longer."""
FAIR_SLACK = 8
"""Jobs of one other tenant that may be begun besides those whose turn it is."""


class JobChange(NamedTuple):
    """A line of the history."""

    at: float
    before: str
    row: JobRow


class _Line(NamedTuple):
    """A job's place in the line of jobs without a lane, when it joined."""

    since: float
    turns: float
    """Turns between it and the one that was served then."""
    served: Mapping[str, int]


class _Asks(NamedTuple):
    """Claims of a member that found nothing, one after another."""

    commits: int
    """What had been committed before."""
    since: float
    times: int


_STORED = (
    "accepted",
    "_keys",
    "_jobs",
    "_members",
    "_slots",
    "_lanes",
    "_steps",
    "_signals",
    "_tries",
    "_ended",
    "_cancelled",
    "_lines",
    "_last",
    "_turn",
    "_turns",
    "_served",
    "_served_at",
)
"""What a failover takes back."""


class ReferenceModel:
    """See above. `clock` tells the seconds since the beginning, `processes` who is there."""

    def __init__(
        self,
        clock: Callable[[], float],
        processes: Sequence[SimulatedProcess],
        weighted: bool,
        *,
        now: Callable[[], float],
        server: bool,
    ) -> None:
        self._clock = clock
        self._now = now
        """By the clock of the queue."""
        self._server = server
        self._processes = processes
        self._weighted = weighted
        """Tenants have shares of their own: then turns are not counted."""
        self.wrong: list[str] = []
        self.changes: list[JobChange] = []
        self.accepted: dict[str, str] = {}
        """Jobs that somebody was told are stored: id to kind."""
        self.calm_since = 0.0
        """When the last fault, and what follows from it, is over."""
        self._keys: dict[tuple[str, str, str], str] = {}
        self._jobs: dict[int, JobRow] = {}
        self._members: dict[int, MemberRow] = {}
        self._slots: set[tuple[str, int, int]] = set()
        self._lanes: dict[str, LaneRow] = {}
        self._steps: dict[tuple[int, str], str] = {}
        """Results of steps that are recorded."""
        self._signals: dict[int, dict[int, SignalRow]] = {}
        """By job and number."""
        self._held: Counter[int] = Counter()
        """Jobs that members hold."""
        self._idle_since: dict[int, float] = {}
        self._tries: dict[str, set[tuple[int, int]]] = {}
        self._ended: dict[str, float] = {}
        self._cancelled: dict[str, float] = {}
        self._sent: dict[tuple[str, str, int], Settlement] = {}
        """What members have sent, by member, job and token."""
        self._given_back: set[tuple[str, str, int]] = set()
        self._begun: set[tuple[str, int]] = set()
        self._marked: set[tuple[str, int]] = set()
        """Those of them that a crash would cost an attempt."""
        self._commits = 0
        self._asks: dict[str, _Asks] = {}
        self._joined: set[str] = set()
        """Memberships that their processes know of: the answer to a request to join may be lost."""
        self._leaving: set[str] = set()
        self._excused: dict[int | None, float] = {None: -inf}
        """Until when a process, by its pid, may lose its lease; under None, all may."""
        self._rewound_at = -inf
        self._lines: dict[int, _Line] = {}
        self._last: dict[tuple[int, str], float] = {}
        self._turn: dict[int, float] = {}
        self._turns: dict[int, float] = {}
        self._served: Counter[tuple[int, str]] = Counter()
        self._served_at: dict[tuple[int, str], float] = {}
        self.receipts = ReceiptBook(self.wrong)
        self._claimed: list[tuple[int, str]] = []
        """Of the transaction that is judged, by band and tenant."""

    # What is told beside the rows.

    def accept(self, jobs: Iterable[Job]) -> None:
        """Somebody was told that these are stored."""
        for job in jobs:
            self.accepted[job.id] = job.kind
            if job.key is not None:
                known = self._keys.setdefault((job.tenant, job.kind, job.key), job.id)
                if known != job.id:
                    self.wrong.append(f"key {job.key!r} stands for two jobs, {known} and {job.id}")

    def send(
        self, member: str, settlements: Sequence[Settlement], process: SimulatedProcess
    ) -> None:
        """A member is about to settle these."""
        for one in settlements:
            self._sent[member, one.lease.id, one.lease.token] = one
            if (one.lease.id, one.lease.token) in self._begun:  # else it only gives it back
                self._judge_cancelled(one.lease, process, "went on")

    def give_back(self, member: str, leases: Iterable[tuple[str, int]]) -> None:
        """A member is about to give back what it holds and has never heard of: job and token."""
        self._given_back |= {(member, job, token) for job, token in leases}

    def ask(self, member: str, process: SimulatedProcess) -> None:
        """A member has asked for jobs, and was given none."""
        now, last = self._clock(), self._asks.get(member)
        if last is None or last.commits != self._commits or now - last.since > ASKS_SECONDS:
            last = _Asks(self._commits, now, 0)
        self._asks[member] = last._replace(times=last.times + 1)
        if last.times == ASKS and self._late(last.since) > 0.0:
            self.wrong.append(
                f"{process} asks again and again: {ASKS} times in {now - last.since:.1f} s, "
                "while nothing changes"
            )

    def begin(self, lease: Lease, process: SimulatedProcess) -> None:
        """A process starts a handler."""
        if (lease.id, lease.token) not in self._begun:
            self._begun.add((lease.id, lease.token))
            self._judge_cancelled(lease, process, "was begun")

    def mark(self, lease: Lease) -> None:
        """From now on a crash costs the job an attempt."""
        self._marked.add((lease.id, lease.token))

    def unmark(self, lease: Lease) -> None:
        """It waits, and is not to blame if its process dies."""
        self._marked.discard((lease.id, lease.token))

    def join(self, member: str) -> None:
        """A process was told that it has joined."""
        self._joined.add(member)

    def leave(self, member: str) -> None:
        """A process is about to end its membership itself."""
        self._leaving.add(member)

    def tell(self, job: str, since: float) -> None:
        """Somebody who waited since then was told that this job has ended."""
        ended = self._ended.get(job)
        if since < self._rewound_at:
            return  # what somebody was told may be forgotten by now
        if ended is None:
            self.wrong.append(f"somebody was told of the end of job {job}, which goes on")
        elif (late := self._late(since, ended)) > TOLD_SECONDS:
            self.wrong.append(f"who waits for job {job} was told {late:.1f} s after it had ended")

    def disturb(self, until: float) -> None:
        """A fault and what follows from it are over by then."""
        self.calm_since = max(self.calm_since, until)

    def excuse(self, process: SimulatedProcess | None, until: float) -> None:
        """A process, or all, may lose its lease until then."""
        pid = None if process is None else process.pid
        self._excused[pid] = max(self._excused.get(pid, -inf), until)

    # What was committed.

    def commit(self, changes: Sequence[RowChange]) -> None:
        """Judge a transaction."""
        self._commits += 1
        taken: dict[str, list[SlotRow]] = {}
        for change in sorted(changes, key=lambda one: isinstance(one, MemberGone)):  # at its end
            match change:
                case JobRow():
                    self._job(change)
                case MemberRow():
                    self._members[change.number] = change
                    self._idle_since[change.number] = self._clock()
                case MemberGone():
                    self._gone(change.number)
                case SlotRow():
                    self._slots.add((change.lane, change.holder, change.ref))
                    taken.setdefault(change.lane, []).append(change)
                case SlotFreed():
                    self._slots.discard((change.lane, change.holder, change.ref))
                    self._tries.get(change.lane, set()).discard((change.holder, change.ref))
                case LaneRow():
                    before, self._lanes[change.name] = self._lanes.get(change.name), change
                    # Whoever takes slots of a lane stores it afterwards. A transaction may do so
                    # several times, and the breaker close and open again between two of them.
                    slots = taken.get(change.name, [])
                    self._judge_tries(change, slots, before)
                    slots.clear()
                case StepRecord():
                    self._step(change)
                case StepGone():
                    self._steps.pop((change.job, change.key), None)
                    self.receipts.forget(change.job, change.key)
                case SignalRow():
                    self._signal(change)
                case SignalGone():
                    self._signals.get(change.job, {}).pop(change.number, None)
                case JobGone():
                    self._forget(change.seq)
        # What one claim takes it takes at once, in whatever order the rows are told.
        self._served.update(self._claimed)
        self._served_at.update(dict.fromkeys(self._claimed, self._clock()))
        self._claimed.clear()
        for lane in taken:
            self._judge_slots(lane)
        for change in changes:
            match change:
                case MemberGone():
                    self._judge_left(change.number)
                case JobRow(waits_lane=str()):
                    self._judge_asleep(change.seq)
                case StepRecord():
                    self._judge_wait(change)
                case SignalRow():
                    self._judge_taken(change)
                    self._judge_asleep(change.job)

    def _job(self, row: JobRow) -> None:
        old = self._jobs.get(row.seq)
        if old is not None and old.state != "running" and row.state == "running":
            self._judge_idle(row)
        self._hold(old, row)
        self._jobs[row.seq] = row
        if old is None:
            self.changes.append(JobChange(self._clock(), "", row))
            self._line_up(row)
            return
        if (old.state, old.token) != (row.state, row.token):
            self.changes.append(JobChange(self._clock(), old.state, row))
        self._judge_change(old, row)
        if row.state in FINAL:
            self._ended.setdefault(row.id, self._clock())
        if row.state == "completed" and old.state == "running":
            self._judge_child(row)
        if row.state == "cancelled":
            self._cancelled.setdefault(row.id, self._clock())
        if old.state != "running" and row.state == "running":
            self._judge_claim(old, row)
        elif (old.ready, old.band, old.lane) != (row.ready, row.band, row.lane):
            self._lines.pop(row.seq, None)
            if old.state != "running":  # what is handed back, or lost, keeps its place
                self._line_up(row)

    def _judge_change(self, old: JobRow, row: JobRow) -> None:
        """A legal history, one ending, and nobody writes on what it does not hold."""
        step = (old.state, row.state)
        if old.state in FINAL and step not in LEGAL:
            if (old.state, old.result, old.token) != (row.state, row.result, row.token):
                self.wrong.append(f"job {row.id} was {old.state} and ended again: {row.state}")
        elif old.state != row.state and step not in LEGAL:
            self.wrong.append(f"job {row.id} went from {old.state} to {row.state}")
        if old.id != row.id:
            self.wrong.append(f"job {old.id} became {row.id}")
        if row.token < old.token:
            self.wrong.append(f"the token of job {row.id} went from {old.token} to {row.token}")
        if old.state == "running" and row.state in STORED_AS and row.token == old.token:
            self._judge_settlement(old, row)
        given_back = row.attempts < old.attempts and row.token > old.token
        marked = not self._server and (row.id, old.token) in self._marked
        if given_back and marked and not self._stops(old.holder):
            self.wrong.append(f"job {row.id} has begun, was lost, and has its attempt again")

    def _stops(self, number: int | None) -> bool:
        """Whether a member was asked to stop: what it interrupts costs no attempt."""
        member = self._members.get(number or 0)
        process = next((p for p in self._processes if member and p.pid == member.pid), None)
        return process is not None and process.stop is not None and process.stop.is_set()

    def _judge_settlement(self, old: JobRow, row: JobRow) -> None:
        holder = self._members.get(old.holder or 0)
        lease = ("" if holder is None else holder.id, row.id, row.token)
        if lease in self._given_back and row.state == "queued":
            return
        said = self._sent.get(lease)
        if said is None:
            self.wrong.append(
                f"job {row.id} was {row.state} by a run that did not hold it any more"
                if row.state != "queued"
                else f"job {row.id} was queued by a run that did not hold it"
            )
            return
        undone = said.outcome is Outcome.CANCEL_SEEN and self._rewound_at > -inf
        if said.outcome not in STORED_AS[row.state] and not (undone and row.state == "queued"):
            self.wrong.append(f"job {row.id} is {row.state}, its run said {said.outcome.value}")
        elif row.state == "completed" and row.result != said.result:
            self.wrong.append(f"job {row.id} has the result of another: {row.result}")
        spent = row.state == "queued" and row.attempts == old.attempts
        if spent and said.report is not None:
            self._judge_spent(row, said)
        if said.outcome is Outcome.RETRY and said.report is None and not spent:
            self.wrong.append(
                f"job {row.id} has failed at attempt {old.attempts}, and is at {row.attempts} again"
            )
        if said.outcome in (Outcome.RETRY, Outcome.FAILED) and said.traceback is not None:
            self.receipts.fail(row.seq, row.id, row.token)

    def _judge_spent(self, row: JobRow, said: Settlement) -> None:
        """An outage and a 429 cost no attempt."""
        assert said.report is not None
        lane = self._lanes.get(said.report.lane or row.lane)
        if said.report.news is News.RATE_LIMITED:
            self.wrong.append(f"job {row.id} has lost an attempt to a 429")
        elif said.report.news is News.UNAVAILABLE and lane is not None and lane.step:
            self.wrong.append(f"job {row.id} has lost an attempt to an outage")

    def _judge_claim(self, old: JobRow, row: JobRow) -> None:
        if row.token != old.token + 1:
            self.wrong.append(f"job {row.id} was claimed without a new token")
        if row.holder not in self._members:
            self.wrong.append(f"job {row.id} was claimed by a process that is not there")
        retries = DEFAULT_MAX_RETRIES if row.max_retries is None else row.max_retries
        if row.attempts != old.attempts + 1 or row.attempts > retries + 1:
            self.wrong.append(
                f"job {row.id} is at attempt {row.attempts} of {retries + 1} (was {old.attempts})"
            )
        self._judge_child(row)
        self._judge_turn(row)

    def _judge_child(self, row: JobRow) -> None:
        if row.attached and row.parent_id is not None:
            cancelled = self._cancelled.get(row.parent_id)
            if cancelled is not None and (late := self._late(cancelled)) > CASCADE_SECONDS:
                self.wrong.append(
                    f"job {row.id} is {row.state} {late:.1f} s after its parent was cancelled"
                )

    def _step(self, row: StepRecord) -> None:
        """What is recorded is not done again, and only who holds the job records."""
        job = self._jobs[row.job]
        if job.state != "running":
            self.wrong.append(f"step {row.name} of job {job.id} was stored, which is {job.state}")
        if row.result is not None:
            known = self._steps.get((row.job, row.key))
            if known not in (None, row.result) and not _ends_earlier(row, known):
                self.wrong.append(f"step {row.name} of job {job.id} was recorded, and done again")
            self._steps[row.job, row.key] = row.result
        self.receipts.record(row, job.token)

    # Signals.

    def _signal(self, row: SignalRow) -> None:
        """A key is one signal, and what is taken once is taken by nobody else."""
        job, known = self._jobs[row.job], self._signals.setdefault(row.job, {})
        old = known.get(row.number)
        if old is None:
            if job.state in FINAL:
                self.wrong.append(f"a signal was stored for job {job.id}, which is {job.state}")
            if row.key is not None and any(one.key == row.key for one in known.values()):
                self.wrong.append(f"key {row.key!r} is two signals of job {job.id}")
        elif old.taken_by is not None and old.taken_by != row.taken_by:
            self.wrong.append(f"signal {row.number} of job {job.id} was taken twice")
        known[row.number] = row

    def _judge_taken(self, row: SignalRow) -> None:
        if row.taken_by is not None and (row.job, row.taken_by) not in self._steps:
            what = f"signal {row.number} of job {self._jobs[row.job].id}"
            self.wrong.append(f"{what} was taken, and no wait has it")

    def _judge_wait(self, row: StepRecord) -> None:
        """A wait ends by one signal of its name, or by its timeout, and never by both."""
        if row.arguments != WAIT_HASH or row.result is None or row.name == "sleep":
            return
        signals = self._signals.get(row.job, {}).values()
        taken = [one for one in signals if one.taken_by == row.key]
        what = f"{row.name} of job {self._jobs[row.job].id}"
        if row.result == "null" and taken:
            self.wrong.append(f"{what} has timed out, and has signal {taken[0].number}")
        elif row.result != "null" and [(f"wait_for:{one.name}", one.payload) for one in taken] != [
            (row.name, row.result)
        ]:
            self.wrong.append(f"{what} has ended with a signal that is not its own")

    def _judge_asleep(self, seq: int) -> None:
        """A signal that is there wakes its job."""
        job, now = self._jobs[seq], self._now()
        if job.state != "queued" or job.ready or job.run_at < now + ASLEEP_SECONDS:
            return
        if job.since > now:
            return  # the clock was set back since: the next upkeep brings it forward
        for one in self._signals.get(seq, {}).values():
            if one.taken_by is None and job.waits_lane == signal_wait(one.name):
                self.wrong.append(f"job {job.id} has signal {one.name!r}, and waits for it")

    # Leases.

    def _hold(self, old: JobRow | None, row: JobRow) -> None:
        before = None if old is None else old.holder
        if before == row.holder:
            return
        if row.holder is not None:
            self._held[row.holder] += 1
        if before is not None:
            self._held[before] -= 1
            self._idle_since[before] = self._clock()

    def _judge_idle(self, row: JobRow) -> None:
        """No job waits while a process has nothing to do; `row` has just been claimed."""
        line = self._lines.get(row.seq)
        if line is None:
            return
        for number in self._members:
            since = self._idle_since[number]
            if not self._held[number] and (late := self._late(line.since, since)) > IDLE_SECONDS:
                self.wrong.append(
                    f"job {row.id} waited {late:.1f} s while process {number} had nothing to do"
                )

    def _judge_left(self, number: int) -> None:
        """Who is gone holds nothing."""
        for job in self._jobs.values():
            if job.holder == number:
                self.wrong.append(f"process {number} is gone, and holds job {job.id}")
        for lane, holder, _ in self._slots:
            if holder == number:
                self.wrong.append(f"process {number} is gone, and has a slot of lane {lane}")

    def away(self, processes: Iterable[SimulatedProcess]) -> list[SimulatedProcess]:
        """Those of these that are no members."""
        members = {member.pid for member in self._members.values()}
        return [one for one in processes if one.pid not in members]

    def _gone(self, number: int) -> None:
        member = self._members.pop(number)
        process = next((one for one in self._processes if one.pid == member.pid), None)
        if process is None or not process.alive:
            return
        if member.id not in self._joined or member.id in self._leaving:
            return
        process.lapses += 1
        if not self._is_excused(process):
            self.wrong.append(f"{process} has lost its lease, and it lives")

    def _is_excused(self, process: SimulatedProcess) -> bool:
        until = max(self._excused[None], self._excused.get(process.pid, -inf))
        return self._clock() <= until

    def _judge_cancelled(self, lease: Lease, process: SimulatedProcess, what: str) -> None:
        """Nothing is begun, or goes on, after a cancel."""
        at = self._cancelled.get(lease.id)
        if at is None or self._is_excused(process):
            return
        if (late := self._late(at)) > CANCEL_SECONDS:
            self.wrong.append(f"job {lease.id} {what} {late:.1f} s after it was cancelled")

    def _late(self, *since: float) -> float:
        """How long ago the last of these was, and the last fault."""
        return self._clock() - max(*since, self.calm_since)

    # Lanes.

    def _judge_slots(self, lane: str) -> None:
        known = self._lanes.get(lane)
        if known is None:
            return  # the slots of questions are counted in their lane
        held = sum(one[0] == lane for one in self._slots)
        if held > known.places:
            self.wrong.append(f"{held} slots are taken in lane {lane} of {known.places}")

    def _judge_tries(
        self, known: LaneRow, taken: Sequence[SlotRow], before: LaneRow | None
    ) -> None:
        """While a breaker is open there is one try at a time. `taken`: since `before`."""
        if before is None or before.trial is None:
            self._tries.pop(known.name, None)  # a try is over once the lane has heard of it
        if not known.step or before is None or not before.step:
            return
        tries = self._tries.setdefault(known.name, set())
        # A job that has begun may have its slot again, which starts no request.
        tries.update(
            (one.holder, one.ref) for one in taken if one.ref > 0 or one.ref == known.trial
        )
        if len(tries) > 1:
            self.wrong.append(f"{len(tries)} tries at once in lane {known.name}, which is open")

    def slots_left(self) -> list[str]:
        """Lanes of which slots are taken."""
        return sorted({lane for lane, _, _ in self._slots if not lane.endswith(QUESTIONS)})

    # Turns.

    def _line_up(self, row: JobRow) -> None:
        if row.state != "queued" or row.ready != 1 or row.lane:
            return
        band, tenant = row.band, row.tenant
        now_served = self._turn.get(band, 0.0)
        turn = max(self._last.get((band, tenant), 0.0), now_served) + 1.0
        self._last[band, tenant] = self._turns[row.seq] = turn
        served = {of: count for (at, of), count in self._served.items() if at == band}
        for at, of in self._claimed:  # before it, in the same transaction
            if at == band:
                served[of] = served.get(of, 0) + 1
        self._lines[row.seq] = _Line(self._clock(), turn - now_served, served)

    def _judge_turn(self, row: JobRow) -> None:
        """Tenants take turns, and none waits for ever for its next."""
        line = self._lines.pop(row.seq, None)
        if line is None:
            return
        last = self._served_at.get((row.band, row.tenant), 0.0)
        if (waited := self._late(line.since, last)) > WAIT_SECONDS:
            self.wrong.append(f"job {row.id} waited {waited:.0f} s for a worker")
        for (band, tenant), count in self._served.items():
            if band == row.band and tenant != row.tenant and not self._weighted:
                before = count - line.served.get(tenant, 0)
                if before > line.turns + FAIR_SLACK:
                    self.wrong.append(
                        f"{before} jobs of tenant {tenant!r} came before job {row.id} of "
                        f"{row.tenant!r}, which was {line.turns:g} turns away"
                    )
        self._claimed.append((row.band, row.tenant))
        turn = self._turns.pop(row.seq)
        self._turn[row.band] = max(self._turn.get(row.band, 0.0), turn)

    def _forget(self, seq: int) -> None:
        row = self._jobs.pop(seq, None)
        self._lines.pop(seq, None)
        if row is not None and row.state not in FINAL:
            self.wrong.append(f"job {row.id} was deleted while it was {row.state}")

    # A failover.

    def copy(self) -> dict[str, Any]:
        """All that is stored, as far as the model goes."""
        copied = {name: deepcopy(getattr(self, name)) for name in _STORED}
        return {**copied, "receipts": self.receipts.copy()}

    def rewind(self, stored: Mapping[str, Any]) -> None:
        """A replica has taken over that knows no more than this. What was accepted later is lost,
        and by nobody's fault."""
        for name in _STORED:
            setattr(self, name, deepcopy(stored[name]))
        self.receipts.rewind(stored["receipts"])
        self._rewound_at = self._clock()
        self._held = Counter(job.holder for job in self._jobs.values() if job.holder is not None)
        self._idle_since = dict.fromkeys(self._members, self._clock())

    # At the end.

    def lost(self) -> list[str]:
        """Jobs that somebody was told are stored, and are not."""
        there = {row.id for row in self._jobs.values()}
        return [f"job {job} was accepted and is lost" for job in self.accepted if job not in there]

    def stuck(self, row: JobRow) -> str:
        """Why a job has not ended, as far as one can see."""
        member = self._members.get(row.holder or 0)
        lease = ("" if member is None else member.id, row.id, row.token)
        if row.state == "running" and member is None:
            return "its process is gone"
        if row.state == "running" and lease in self._sent:
            return f"its run has said {self._sent[lease].outcome.value!r}, which is not stored"
        if row.state == "running" and (row.id, row.token) not in self._begun:
            return "it was claimed and never begun"
        if row.state == "running":
            return "its run does not end"
        slots = Counter(holder for lane, holder, _ in self._slots if row.lane and lane == row.lane)
        if slots:
            return f"its lane {row.lane} has slots taken: by process {dict(slots)}"
        idle = [number for number in self._members if not self._held[number]]
        if row.ready and idle:
            return f"process {idle[0]} has nothing to do, and does not claim it"
        return "it waits" if row.ready else f"it is put off until {row.run_at - self._now():+.1f} s"

    def unfinished(self, besides: Iterable[str]) -> list[JobRow]:
        """Jobs that have not ended, but for those of these kinds."""
        kinds = frozenset(besides)
        return [
            row for row in self._jobs.values() if row.state not in FINAL and row.kind not in kinds
        ]


def _ends_earlier(row: StepRecord, known: str | None) -> bool:
    """Whether it is the end of a wait, planned again because the clock was ahead the first time."""
    is_end = row.arguments == END_HASH or (row.arguments == WAIT_HASH and row.name == "sleep")
    return is_end and float(row.result or 0) < float(known or 0)
