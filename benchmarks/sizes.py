"""How much each benchmark does: every number in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Sizes:
    name: str
    rounds: int
    """Runs of each contender; they take turns, and medians are compared."""
    jobs: int
    """No-op jobs for us."""
    peer_jobs: int
    """No-op jobs for a peer: fewer, because it is slower; rates are compared."""
    batch_jobs: int
    single_jobs: int
    latency_jobs: int
    """Per round."""
    idle_seconds: float
    recovery_jobs: int
    lost_after: float
    """Seconds without any progress after which a job counts as lost."""
    recovery_bound: float
    """Seconds after which peers that have not recovered are given up."""
    small_backlog: int
    large_backlog: int
    claims: int
    late_writes: int
    """Per round; against the queue itself."""
    frozen_processes: int
    """SIGSTOP, takeover, SIGCONT: this many times."""
    help_runs: int
    waiters: int
    lane_seconds: float
    token_seconds: float
    """Of a window."""
    token_windows: int
    token_permits: int
    limit_seconds: float
    blocked_jobs: int
    others: int
    limited_jobs: int
    """In front of others with an in-job limiter, whose every job must be waited for."""
    outage_seconds: float
    documents: int
    """Made searchable by each contender in a round."""
    pdfs: int
    """At once; then ten times as many."""
    chunks: int
    """In the corpus that is searched."""
    questions: int
    http_seconds: float
    """Of asking for one thing over and over."""
    long_polls: int
    load_clients: int
    load_seconds: float
    steps: int
    """Of each of many jobs; fewer for a peer."""
    peer_steps: int
    lone_steps: int
    """Of one job, one after another."""
    records: int
    sleepers: int


FULL = Sizes(
    name="full",
    rounds=5,
    jobs=60_000,
    peer_jobs=10_000,
    batch_jobs=50_000,
    single_jobs=2_000,
    latency_jobs=100,
    idle_seconds=20.0,
    recovery_jobs=200,
    lost_after=10.0,
    recovery_bound=60.0,
    small_backlog=1_000,
    large_backlog=1_000_000,
    claims=300,
    late_writes=50,
    frozen_processes=3,
    help_runs=10,
    waiters=10_000,
    lane_seconds=20.0,
    token_seconds=6.0,
    token_windows=6,
    token_permits=10_000,
    limit_seconds=40.0,
    blocked_jobs=100_000,
    others=2_000,
    limited_jobs=200,
    outage_seconds=300.0,
    documents=100,
    pdfs=100,
    chunks=100_000,
    questions=300,
    http_seconds=5.0,
    long_polls=1_000,
    load_clients=200,
    load_seconds=60.0,
    steps=100,
    peer_steps=20,
    lone_steps=1_000,
    records=10_000,
    sleepers=100_000,
)

QUICK = Sizes(
    name="quick",
    rounds=3,
    jobs=10_000,
    peer_jobs=2_000,
    batch_jobs=20_000,
    single_jobs=500,
    latency_jobs=40,
    idle_seconds=5.0,
    recovery_jobs=200,
    lost_after=4.0,
    recovery_bound=40.0,
    small_backlog=1_000,
    large_backlog=100_000,
    claims=100,
    late_writes=20,
    frozen_processes=1,
    help_runs=5,
    waiters=10_000,
    lane_seconds=5.0,
    token_seconds=6.0,
    token_windows=2,
    token_permits=4_000,
    limit_seconds=40.0,
    blocked_jobs=20_000,
    others=1_000,
    limited_jobs=100,
    outage_seconds=8.0,
    documents=100,
    pdfs=50,
    chunks=20_000,
    questions=100,
    http_seconds=2.0,
    long_polls=1_000,
    load_clients=200,
    load_seconds=15.0,
    steps=100,
    peer_steps=10,
    lone_steps=400,
    records=10_000,
    sleepers=10_000,
)

TINY = Sizes(
    name="tiny",
    rounds=1,
    jobs=200,
    peer_jobs=100,
    batch_jobs=500,
    single_jobs=50,
    latency_jobs=5,
    idle_seconds=0.5,
    recovery_jobs=100,
    lost_after=2.0,
    recovery_bound=15.0,
    small_backlog=500,
    large_backlog=2_000,
    claims=10,
    late_writes=5,
    frozen_processes=1,
    help_runs=1,
    waiters=100,
    lane_seconds=1.0,
    token_seconds=1.0,
    token_windows=1,
    token_permits=100,
    limit_seconds=1.0,
    blocked_jobs=500,
    others=100,
    limited_jobs=40,
    outage_seconds=1.5,
    documents=6,
    pdfs=2,
    chunks=300,
    questions=10,
    http_seconds=0.5,
    long_polls=50,
    load_clients=10,
    load_seconds=1.0,
    steps=2,
    peer_steps=2,
    lone_steps=20,
    records=100,
    sleepers=50,
)
"""For the harness's own tests; the figures mean nothing."""
