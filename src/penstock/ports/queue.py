"""The port to a job queue: jobs, worker processes, and the logs of changes.

An adapter promises:
- `enqueue` stores a whole batch or nothing, in one round trip;
- `Member.exchange` settles, then claims, each all or nothing;
- whatever a member writes on a job is fenced by the job's id, the lease's token and the random id
  of the membership. Numbers that the store gives out (a job's seq, a member's number) find rows
  and prove nothing: after a failover to a replica that lagged they are given again;
- a lease ends with its holder's membership: when its process is provably dead, or when another
  has watched it not being renewed for as long as a lease lasts, its jobs go back to the queue;
- every wake-up is sent after the change it announces can be read.

Methods raise QueueUnavailable while the queue cannot be reached. Then nothing was stored, or,
for `exchange`, the same call can be made again: settling twice with one token is a no-op.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.model.change import Change
from penstock.model.job import Job, JobState, Priority
from penstock.model.lane import LaneConfig
from penstock.ports.lanes import Busy, Permit, PermitRequest, Report, Returned
from penstock.ports.operators import OperableQueue
from penstock.ports.steps import Consumed, Recorded, StepRow

if TYPE_CHECKING:
    from penstock.model.amounts import Amounts
    from penstock.model.budget import BudgetConfig
    from penstock.ports.ledger import Charge, Charged, UsageQuery, UsageSum
    from penstock.ports.schedules import ScheduleStore, ScheduleTick

NO_LANE = ""
UNKNOWN_LANE = "?"
"""The lane of a job whose kind no process has known yet; see `KindDefaults`."""
CASCADE_SECONDS = 1.0
"""How long who cancels jobs goes on with their children, before others do."""
FEED_SECONDS = 3600.0
"""How long an entry can be read in the feed of its tenant, unless its log is deleted sooner."""


class NewJob(NamedTuple):
    """The fields that differ between the jobs of one batch."""

    id: str
    payload: str
    key: str | None
    lane: str
    decoded: dict[str, Any] | None = None
    """The payload as the caller gave it; spares decoding the text again."""
    amount: str | None = None
    """What it reserves of what its lane counts, as its row keeps it."""
    burst: str | None = None
    """In a batch with `debounce` or `unique_for`: the key of its burst, which no other item has."""


class ParentRun(NamedTuple):
    """The identity of one run of a parent job."""

    token: int
    member: str
    """The id of the membership that it is leased to."""


class TakenOver(NamedTuple):
    """Records that a new job takes over from another."""

    job_id: str
    before: int
    """Those whose position is lower."""


class Debounce(NamedTuple):
    """Waiting times by which the jobs of a burst become one."""

    seconds: float
    """It starts so long after the last of them was enqueued,"""
    max_wait: float
    """and at most so long after the first."""


@dataclass(slots=True, frozen=True)
class NewJobs:
    """A batch of jobs of one kind to enqueue together."""

    kind: str
    items: Sequence[NewJob]
    tenant: str = "default"
    priority: Priority = Priority.MEDIUM
    run_at: float | None = None
    deadline: float | None = None
    timeout: float | None = None
    max_retries: int | None = None
    log: str | None = None
    parent_id: str | None = None
    parent_run: ParentRun | None = None
    """The run of the parent that enqueues them. ParentEnded, and nothing is stored, unless it
    goes on. None: no run does."""
    attached: bool = False
    """They are cancelled with their parent."""
    rerun_of: str | None = None
    """The job that they repeat."""
    records: TakenOver | None = None
    """For a single job without a key. JobNotFound, and nothing is stored, if that job is gone."""
    trace: str | None = None
    """The span that enqueues them, as a W3C traceparent."""
    replace_finished: bool = False
    """A key held by a failed or cancelled job is taken over by a new job."""
    tick: ScheduleTick | None = None
    """The tick they are for. ScheduleChanged, and nothing is stored, if it is not due any more."""
    debounce: Debounce | None = None
    """An item whose burst has a job of this tenant and kind that was never claimed replaces its
    payload, and what belongs to that: lane, amount, priority, deadline, timeout, retries, trace.
    Who enqueues first is not its parent. An item whose id is taken gives the job that has it."""
    unique_for: float | None = None
    """An item whose burst has made a job of this tenant and kind in so many seconds, as that job
    was told, gives that one as long as its row is kept."""

    @property
    def bursts(self) -> bool:
        """Whether its items are told apart by the bursts they belong to."""
        return self.debounce is not None or self.unique_for is not None


class KindDefaults(NamedTuple):
    """Defaults of a kind; they complete jobs that were enqueued where the kind was unknown."""

    timeout: float
    max_retries: int
    lane_of: Callable[[str], str] | None = None
    """The lane of a job with this payload; None: jobs of this kind have no lane."""
    amount_of: Callable[[str], str] | None = None
    """The amount of a job with this payload; None: they reserve nothing."""


Ref = tuple[int, str, int]
"""What tells a lease from all others of its membership: the job's seq and id, and its own token.
The seq finds the job and proves nothing: a server that lost its last moments gives it again."""


class Lease(NamedTuple):
    """A claimed job and the right to settle it: valid while the job of this `id` is held by the
    membership that claimed it, and `token` is its newest."""

    seq: int
    id: str
    kind: str
    tenant: str
    payload: str
    priority: int
    lane: str
    key: str | None
    log: str | None
    parent_id: str | None
    enqueued_at: float
    run_at: float
    deadline: float | None
    timeout: float | None
    max_retries: int | None
    attempts: int
    """Runs started, this one included."""
    crashes: int
    releases: int
    token: int
    history: str
    trace: str | None = None
    """See `NewJobs`."""
    start_at: float = 0.0
    """In a lane: when the permit allows the start."""
    void_at: float = 0.0
    """In a lane: a start later than this needs another permit. Infinite where the job resumes after
    it was suspended: it has its slot, and no permit for a request."""
    reserved: Amounts | None = None
    """In a lane that counts amounts: what it was charged for this run."""
    refused: str | None = None
    """Why it cannot be run: its amount is more than its lane ever has."""
    usual: bool = False
    """It said nothing of its amount, and was charged for what is usual of its kind."""

    @property
    def ref(self) -> Ref:
        return self.seq, self.id, self.token


class Outcome(Enum):
    """The outcome of a lease."""

    COMPLETED = "completed"
    RETRY = "retry"
    """The run failed; run again at `run_at`."""
    FAILED = "failed"
    RELEASED = "released"
    """The handler asked to be run later: the attempt is returned, the release counted."""
    HANDED_BACK = "handed back"
    """Not run, interrupted by a stop, or its lane's fault: attempt returned, place kept."""
    SUSPENDED = "suspended"
    """The handler sleeps or waits for a signal: the attempt is returned, and no release counted."""
    CANCEL_SEEN = "cancel seen"
    """The job had been cancelled in the queue and its run has now ended. Where a failover has taken
    the cancel back, the job is handed back."""


class Settlement(NamedTuple):
    """The end of one lease."""

    lease: Lease
    outcome: Outcome
    started_at: float = 0.0
    finished_at: float = 0.0
    result: str | None = None
    error: dict[str, Any] | None = None
    run_at: float = 0.0
    traceback: str | None = None
    waits_lane: str | None = None
    """The lane, not its own, that the job waits for: it is queued when that lane recovers."""
    report: Report | None = None
    """For a job in a lane. Where the failure turns out to be the lane's, the outcome is not the
    one given: the job goes back to its line with its attempt."""
    signal: str | None = None
    """The signal that a suspended job waits for: it is due at once if that has come."""


class Progress(NamedTuple):
    """The progress of a running job."""

    lease: Lease
    fraction: float | None
    """From 0 to 1. None: nothing new, and no message."""
    message: str
    lines: str = ""
    """To append to its log; see `penstock.model.job_log`."""


class StepWrite(NamedTuple):
    """A step to store for a running job."""

    lease: Lease
    row: StepRow


class Want(NamedTuple):
    """A process's request for jobs."""

    limit: int
    kinds: Mapping[str, KindDefaults]
    crashed: bool
    """Whether one job with a crash on its record may be among them."""
    lanes: int = 0
    """How many more jobs in lanes may start about now; `limit` is for jobs without a lane."""
    ordinary: int | None = None
    """How many of all may be of less than high priority; None: any number."""
    later: int = 0
    """How many jobs without a lane it would also take when they come, until its next trip; those
    claimed now count among them. Put into the `Inbox` that `join` was given."""
    slack: float = 0.0
    """Seconds that starts in lanes may be late: the process has been late for others."""

    @property
    def looks(self) -> bool:
        """Whether it asks for anything that is there now."""
        return bool(self.limit or self.lanes)


class Inbox(Protocol):
    """Where a queue puts jobs that it leases to a process unasked."""

    def put(self, leases: Sequence[Lease]) -> None:
        """In the event loop of the process."""
        ...


class Exchange(NamedTuple):
    """The result of one trip to the queue."""

    leases: list[Lease]
    stale: list[Settlement]
    """Settlements that were refused: the lease had been taken over, or the job cancelled."""
    next_at: float | None
    """When the next scheduled job becomes due, if the claim found fewer than wanted."""
    member: bool
    """False when this membership has lapsed: all its leases are lost, it must join again."""
    spared: frozenset[Ref] = frozenset()
    """Leases whose failure was their lane's fault: the jobs wait, no attempt is spent."""


class Stopped(NamedTuple):
    """The result of stopping a log."""

    cancelled: int
    """Jobs that this call has cancelled."""
    running: int
    """Jobs that go on to their end: those that run, and children they are left."""


class FeedEntry(NamedTuple):
    """An entry of a tenant's feed."""

    position: str
    """Where it stands: what to read on from. Opaque, printable ASCII without blanks."""
    change: Change


class Topic(Enum):
    """The topic of a wake-up."""

    READY = "ready"
    """There may be something to claim."""
    FINISHED = "finished"
    """A job was settled or a change logged."""
    CANCELLED = "cancelled"
    """A running job was cancelled; its holder should look."""
    SCHEDULED = "scheduled"
    """A schedule was changed."""


@dataclass(slots=True, frozen=True)
class JobFilter:
    """A filter of jobs; every given part must match."""

    ids: Sequence[str] | None = None
    states: Sequence[JobState] | None = None
    kind: str | None = None
    """A kind, or a pattern such as `ingest.*`."""
    tenant: str | None = None
    log: str | None = None
    parent_id: str | None = None
    error_type: str | None = None
    lane: str | None = None
    priority: Priority | None = None
    enqueued_after: float | None = None
    """Seconds since 1970: at that moment or later."""
    enqueued_before: float | None = None
    """Seconds since 1970: earlier than that moment."""


class Wakeup(Protocol):
    """One listener. A wake-up that arrives while nobody waits is kept for the next wait."""

    async def wait(self, timeout: float | None) -> bool:
        """True when woken, False after `timeout` seconds."""
        ...

    def ring(self) -> None:
        """Wake this listener, and only this one, as if something had happened."""
        ...

    def close(self) -> None: ...


class Member(Protocol):
    """One worker process's membership: what it holds is leased under it."""

    @property
    def id(self) -> str: ...

    def now(self) -> float:
        """See `JobQueue.now`."""
        ...

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        progress: Sequence[Progress],
        want: Want | None,
        returned: Sequence[Returned] = (),
    ) -> Exchange:
        """Note progress, settle, take permits back, then claim. What was settled stays settled
        if the claim fails; making the same call again does no harm."""
        ...

    async def permits(self, requests: Sequence[PermitRequest]) -> list[Permit | Busy]:
        """Permits for requests made inside jobs, in one round trip."""
        ...

    def record(self, writes: Sequence[StepWrite]) -> Awaitable[list[bool]]:
        """Store steps of running jobs in one transaction, each fenced by its lease; which were
        stored. One that has no result counts attempts: it leaves a result that is there as it is,
        and may be forgotten by a crash of the machine. Storing the same again does no harm. Whoever
        listens for FINISHED is woken for events, not for steps. A future has begun already."""
        ...

    @property
    def transactions(self) -> bool:
        """Whether `transact` works here."""
        ...

    async def transact(
        self, lease: Lease, effect: Callable[[Any], Awaitable[StepRow]]
    ) -> StepRow | None:
        """Call `effect` with a connection in a transaction, and store the step that it returns in
        the same one, fenced by the lease; None if that is lost. Or nothing: what it raises is
        raised."""
        ...

    async def consume(self, lease: Lease, name: str, row: StepRow) -> Consumed:
        """Take the oldest signal of this name that nobody has taken, and store `row` with its
        payload as result, in one transaction and fenced by the lease."""
        ...

    async def drop_steps(self, lease: Lease, keys: Sequence[str]) -> bool:
        """Delete steps of a running job, and give back signals that they have taken; False, and
        nothing is done, if the lease is lost."""
        ...

    async def probes(self) -> list[tuple[str, str]]:
        """Lanes in trouble that this process is to probe now: (lane, URL or host:port)."""
        ...

    async def probed(self, lane: str, ok: bool) -> None:
        """What a probe found."""
        ...

    def mark_started(self, lease: Lease) -> int:
        """Note, so that it survives SIGKILL, that the handler starts now. Returns a slot."""
        ...

    def clear_started(self, slot: int) -> None:
        """The settlement of the job in `slot` is stored."""
        ...

    def renew(self, status: Mapping[str, Any], holds: Sequence[Lease]) -> bool:
        """Extend every lease; blocking, for a thread of its own. False: the membership lapsed.

        `holds` are jobs waiting for a retry whose last run still occupies a thread here;
        they must not start anywhere before it returns.
        """
        ...

    async def cancelled(self) -> list[int]:
        """Which of the jobs held here (by seq) have been cancelled."""
        ...

    async def upkeep(self) -> None:
        """Take back what dead or lapsed processes held, cancel children of cancelled jobs, bring
        forward what was put off while the clock was ahead, age waiting jobs, apply retention."""
        ...

    async def leave(self) -> None:
        """End the membership; whatever it still holds goes back to the queue."""
        ...


class JobQueue(OperableQueue, Protocol):
    """Jobs, wherever they are stored."""

    @property
    def url(self) -> str: ...

    @property
    def lane_config(self) -> Callable[[str], LaneConfig]:
        """What is configured of a lane."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def exists(self) -> bool:
        """Whether there is such a queue already; `open` makes it otherwise. Needs no `open`."""
        ...

    def now(self) -> float:
        """The queue's clock, in seconds since 1970, as near as this process knows it. Every time
        that goes into the queue or comes out of it is on this clock."""
        ...

    async def enqueue(self, batch: NewJobs, conn: Any = None) -> list[Job]:
        """Store the jobs; an item whose id or key is taken gives the job that has it.
        LogStopped, and nothing is stored, if there is anything new for a log that is stopped
        (but see `stop`); ParentEnded likewise if the run that enqueues them is over.

        `conn`: a connection of the caller to the queue's own database.
        Then the jobs are part of the transaction that is open on it, and those who wait for jobs
        are woken by its commit. ConfigError where it is no such connection, or the queue can be
        part of no transaction.
        """
        ...

    async def get(self, ids: Sequence[str]) -> dict[str, Job]:
        """The jobs that exist, by id."""
        ...

    async def finished(self, ids: Sequence[str]) -> list[str]:
        """Which of `ids` need no more waiting: finished, or gone."""
        ...

    async def find(self, where: JobFilter, limit: int, before: str | None = None) -> list[Job]:
        """Matching jobs, newest first; `before` is the last id of the previous page.

        By an index where the filter names ids, a log, a parent, a lane or dead letters. Else it
        goes through the jobs from the newest on until `limit` are found, or through all."""
        ...

    async def cancel(self, where: JobFilter) -> list[str]:
        """Cancel matching jobs that are queued or running; the ids of those cancelled.

        Their attached children follow, and the children of these, a batch at a time. Whoever
        cancels does so for a second; what is left then, or if it dies, `upkeep` does."""
        ...

    async def redrive(self, where: JobFilter, *, from_scratch: bool = False) -> list[str]:
        """Queue matching dead letters again with fresh retries, history kept, and the records of
        their steps too unless `from_scratch`. Those of a log that is stopped stay where they are.
        """
        ...

    async def signal(self, job_id: str, name: str, payload: str, key: str | None) -> bool:
        """Store a signal for a job (JSON text), and queue the job if it waits for it. False: it has
        got one of this key before, also if it is finished. JobNotFound; JobEnded; SignalLimit."""
        ...

    async def steps(self, job_id: str) -> list[StepRow]:
        """The steps and receipts of a job, in the order in which they were begun."""
        ...

    async def secret(self, name: str) -> bytes:
        """A random value that all processes of this queue share, made by the first that asks."""
        ...

    async def recorded(self, job_id: str, after: int, limit: int) -> list[Recorded]:
        """Steps and events of a job that were recorded after a position, in order. A position is
        higher than every earlier one of its job, also of those that were dropped, and nothing
        ever appears before one that was given out."""
        ...

    async def last_recorded(self, ids: Sequence[str]) -> dict[str, int]:
        """The newest position of each of these jobs that is there; 0: it has recorded nothing."""
        ...

    async def discard(self, where: JobFilter) -> list[str]:
        """Delete matching dead letters."""
        ...

    async def charge(self, charges: Sequence[Charge], *, soft: bool = False) -> Charged:
        """Enter these in the ledger: see `penstock.ports.ledger`. The first word on what a request
        has used counts, whoever gives it; a reservation changes nothing that is there, and may be
        forgotten by a crash of the machine if it is `soft`. It is not entered where a budget is
        spent."""
        ...

    async def set_budget(
        self, payer: str, config: BudgetConfig | None, configured: str | None = None
    ) -> bool:
        """Give a payer a budget, or another, or with None none any more; False: it had none. What
        waits for it goes on, if there is something left. `configured`: as the settings have it."""
        ...

    async def usage(self, query: UsageQuery) -> list[UsageSum]:
        """What was spent: days from the newest on, others from the dearest on, the first 1,000."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """The schedules that are rows."""
        ...

    async def next_schedule(self, now: float) -> float | None:
        """When the next of them is due; 0 if one was counted while the clock was ahead."""
        ...

    def callers_waiting(self) -> int:
        """How many callers of this process wait for a connection to the queue at this moment."""
        ...

    async def work_left(self, kinds: Sequence[str] | None) -> bool:
        """Whether any job (of these kinds) is queued or running."""
        ...

    async def stop(self, tenant: str, log: str, *, running: bool, whole: bool = False) -> Stopped:
        """Let a log take no more jobs until `reopen`, and cancel those of it that are queued;
        with `running`, also those that run. All at once, whatever else goes on.

        From then on no job of it is queued: what would be run again (a retry, a hand-back, a
        lost process) is cancelled instead. Doing it again is harmless, and may add `running`.
        The log tells: "cancelled" for each job, then "stopped" if anything has changed.

        With `whole`, jobs that run finish with their children: attached children in the same
        log of a job that runs and was there before the stop are taken, left in the queue and
        run again as ever. Theirs are not. A later stop without `whole` ends that.
        """
        ...

    async def reopen(self, tenant: str, log: str) -> None:
        """Let a log take jobs again; the log tells "resumed" if it was stopped. Nothing that
        was cancelled comes back."""
        ...

    async def stopped(self, logs: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether each log (tenant, log) is stopped; one that nobody knows is not."""
        ...

    async def note(self, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
        """Add an entry to a log that tells of no job (its `job_id` is empty), so that
        whoever watches the log wakes."""
        ...

    async def changes(self, tenant: str, log: str, since: int, limit: int) -> list[Change]:
        """Entries of a log after version `since`, in order."""
        ...

    async def versions(self, logs: Sequence[tuple[str, str]]) -> list[int]:
        """The newest version of each log (tenant, log); 0 where there is none."""
        ...

    async def feed(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        """Entries of all logs of a tenant after a position, or from the oldest kept. Each log's
        are in order, and nothing ever appears before a position that was given out.

        Who comes back after longer than `FEED_SECONDS` may have missed some. An entry may be
        readable a little later here than in its log, and its wake-up be early, so whoever follows
        looks now and then besides. ValidationError if `after` is no position of this queue.
        """
        ...

    async def feed_end(self, tenant: str) -> str:
        """A position after everything that can be read in the feed now."""
        ...

    async def join(
        self,
        kinds: Sequence[str],
        max_workers: int,
        lease_seconds: float,
        inbox: Inbox | None = None,
    ) -> Member:
        """Become a worker process of this queue. Jobs that a trip said it would take later are put
        into `inbox`; a queue may hand over none, and wake instead."""
        ...

    def listen(self, topic: Topic) -> Wakeup:
        """Hear of changes made by any process."""
        ...
