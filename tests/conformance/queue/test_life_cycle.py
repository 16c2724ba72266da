"""Any sequence of what can happen to jobs, against a model that fits on two pages.

After every step each stored job must be where the model says. On the way: no job is leased
twice at a time, a token is never given twice, attempts never exceed the retries allowed plus
one, and a result is recorded once.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.errors import KeyConflict
from penstock.model.job import Job, JobState
from penstock.ports.queue import JobFilter, Lease, Member, Outcome, Settlement
from tests.conformance import simulated
from tests.conformance.support import (
    SUITE,
    Ledger,
    cancel_seen,
    claim,
    completed,
    failed,
    handed_back,
    new_jobs,
    released,
    retry,
    settle,
)

T = TypeVar("T")
EXPLORE = bool(os.environ.get("PENSTOCK_EXPLORE"))
"""Look for new examples, and make what fails as short as possible. That can take minutes;
otherwise the same examples are run every time."""
EXAMPLES = {"postgres": 25, "redis": 25, "simulated": 50, "sqlite": 50, "valkey": 25}
"""Fewer where each of the thousand steps is several trips to a server."""
SETTINGS = settings(
    stateful_step_count=40,
    phases=[Phase.generate, Phase.shrink] if EXPLORE else [Phase.generate],
    derandomize=not EXPLORE,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
HOUR = 3600.0
MEMBERS = st.integers(0, 1)
MOSTLY = st.sampled_from([True, True, False])
SELDOM = st.sampled_from([False, False, True])
ENDS = st.sampled_from([completed, failed, retry, retry, released, handed_back, cancel_seen])


@dataclass
class ModelJob:
    """What must be true of one job."""

    id: str
    payload: str
    key: str | None
    max_retries: int
    run_at: float
    place: int | None
    """Its number in the line; None until it has joined it."""
    state: JobState = JobState.QUEUED
    attempts: int = 0
    crashes: int = 0
    releases: int = 0
    holder: int | None = None
    lease: Lease | None = None
    """The lease that may settle it, or did."""
    started: bool = False
    results: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    history: list[str] = field(default_factory=list)

    def queue_again(self, run_at: float | None = None) -> None:
        """Back to the queue: in its old place, or at the end of the line once due."""
        self.state, self.holder, self.started = JobState.QUEUED, None, False
        if run_at is not None:
            self.run_at, self.place = run_at, None

    def lose_holder(self) -> None:
        """Its holder is gone; a run that had started has spent its attempt."""
        if self.state is JobState.RUNNING:
            if not self.started:
                self.attempts -= 1
                self.queue_again()
            else:
                self.crashes += 1
                if self.attempts > self.max_retries:
                    self.state = JobState.FAILED
                    self.history.append("failed")
                else:
                    self.queue_again()
                    self.history.append("lost")
            self.lease = None
        self.holder, self.started = None, False


class LifeCycle(RuleBasedStateMachine):
    jobs = Bundle("jobs")
    leases = Bundle("leases")

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.entered = ExitStack()
        folder = self.entered.enter_context(tempfile.TemporaryDirectory())
        if backend == simulated.NAME:
            self.entered.enter_context(simulated.simulated())
        self.runner = self.entered.enter_context(asyncio.Runner(loop_factory=simulated.new_loop))
        self.ledger = Ledger(backend, Path(folder))
        self.queue = self.run(self.ledger.open())
        self.members: list[Member] = [self.run(self.ledger.join(self.queue)) for _ in range(2)]
        self.slots: dict[int, int] = {}
        self.model: dict[str, ModelJob] = {}
        self.places = count()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.ledger.close())
        self.entered.close()

    def owner_of(self, key: str | None) -> ModelJob | None:
        return next((j for j in self.model.values() if key is not None and j.key == key), None)

    @rule(
        target=jobs,
        more=st.integers(0, 2),
        key=st.sampled_from([None, None, "a", "b"]),
        payload=st.sampled_from(["{}", '{"other":1}']),
        max_retries=st.sampled_from([2, 1, 2, 0]),
        later=st.sampled_from([0.0, 0.0, -HOUR, HOUR]),
        replace=st.booleans(),
    )
    def enqueue(
        self,
        more: int,
        key: str | None,
        payload: str,
        max_retries: int,
        later: float,
        replace: bool,
    ) -> Any:
        """One job with a key or without, and some more without."""
        run_at = time.time() + later if later else None
        batch = new_jobs(
            payloads=[payload] * (1 + more),
            keys=[key] + [None] * more,
            max_retries=max_retries,
            run_at=run_at,
            replace_finished=replace,
        )
        owner = self.owner_of(key)
        if owner and replace and owner.state in (JobState.FAILED, JobState.CANCELLED):
            owner.key = None
            owner = None
        if owner and owner.payload != payload:
            with pytest.raises(KeyConflict):
                self.run(self.queue.enqueue(batch))
            return multiple()
        jobs = self.run(self.queue.enqueue(batch))
        ids = [item.id for item in batch.items]
        if owner:
            ids[0] = owner.id
        assert [job.id for job in jobs] == ids
        new = jobs[1:] if owner else jobs
        for job in new:
            place = None if later > 0 else next(self.places)
            self.model[job.id] = ModelJob(job.id, payload, job.key, max_retries, job.run_at, place)
        return multiple(*(job.id for job in new))

    @rule(target=leases, member=MEMBERS, limit=st.integers(1, 3), crashed=MOSTLY)
    def claim_ahead(self, member: int, limit: int, crashed: bool) -> Any:
        return multiple(*self.claim(member, limit, crashed))

    @rule(target=leases, member=MEMBERS, limit=st.integers(1, 3), crashed=MOSTLY)
    def claim_and_start(self, member: int, limit: int, crashed: bool) -> Any:
        leases = self.claim(member, limit, crashed)
        for lease in leases:
            self.slots[id(lease)] = self.members[member].mark_started(lease)
            self.model[lease.id].started = True
        return multiple(*leases)

    def claim(self, member: int, limit: int, crashed: bool) -> list[Lease]:
        got = self.run(claim(self.members[member], limit, crashed=crashed))
        assert [lease.id for lease in got] == self.expected(limit, crashed)
        for lease in got:
            job = self.model[lease.id]
            assert job.holder is None
            assert not job.tokens or lease.token > max(job.tokens)
            job.state, job.holder, job.lease = JobState.RUNNING, member, lease
            job.attempts += 1
            job.tokens.append(lease.token)
            assert lease.attempts == job.attempts <= job.max_retries + 1
            assert (lease.crashes, lease.releases) == (job.crashes, job.releases)
        return got

    def expected(self, limit: int, crashed: bool) -> list[str]:
        queued = [job for job in self.model.values() if job.state is JobState.QUEUED]
        due = [job for job in queued if job.place is None and job.run_at <= time.time()]
        for job in sorted(due, key=lambda job: job.run_at):
            job.place = next(self.places)
        line = sorted(
            (job.place, job) for job in queued if job.place is not None
        )  # places differ, so jobs are never compared
        suspects = [job.id for _, job in line if job.crashes][: 1 if crashed else 0]
        return (suspects + [job.id for _, job in line if not job.crashes])[:limit]

    def held(self) -> list[ModelJob]:
        return [job for job in self.model.values() if job.holder is not None]

    @precondition(lambda self: bool(self.held()))
    @rule(pick=st.integers(0, 5), end=ENDS, later=SELDOM)
    def settle_what_is_held(self, pick: int, end: Callable[..., Settlement], later: bool) -> None:
        held = self.held()
        job = held[pick % len(held)]
        assert job.lease is not None
        assert job.holder is not None
        self.settle(job.lease, end, later, job.holder)

    @rule(lease=leases, end=ENDS, later=SELDOM, by=MEMBERS)
    def settle_anything(
        self, lease: Lease, end: Callable[..., Settlement], later: bool, by: int
    ) -> None:
        self.settle(lease, end, later, by)

    def settle(self, lease: Lease, end: Callable[..., Settlement], later: bool, by: int) -> None:
        settlement = end(lease)
        if settlement.outcome is Outcome.RETRY and lease.attempts > (lease.max_retries or 0):
            settlement = failed(lease)
        if settlement.outcome is Outcome.COMPLETED:
            settlement = settlement._replace(result=f'"token {lease.token}"')
        if later and settlement.outcome in (Outcome.RETRY, Outcome.RELEASED, Outcome.HANDED_BACK):
            settlement = settlement._replace(run_at=time.time() + HOUR)
        stale = self.run(settle(self.members[by], settlement))
        assert stale == ([settlement] if self.refused(settlement, by) else [])
        job = self.model.get(lease.id)
        if job and job.lease is lease and job.holder == by:
            self.end(job, settlement)

    def refused(self, settlement: Settlement, by: int) -> bool:
        """Not by the newest lease, while another holds it, or of a job that has been cancelled."""
        if settlement.outcome is Outcome.CANCEL_SEEN:
            return False
        job = self.model.get(settlement.lease.id)
        if not job or job.lease is not settlement.lease or job.state is JobState.CANCELLED:
            return True
        return job.holder not in (None, by)

    def end(self, job: ModelJob, settlement: Settlement) -> None:
        """A settlement by the holder."""
        holder = job.holder
        assert holder is not None
        # However the run of a cancelled job ended, it has ended now.
        if job.state is not JobState.CANCELLED:
            match settlement.outcome:
                case Outcome.COMPLETED:
                    job.state = JobState.COMPLETED
                    job.results.append(f"token {settlement.lease.token}")
                case Outcome.FAILED:
                    job.state = JobState.FAILED
                    job.history.append("failed")
                case Outcome.RETRY:
                    job.queue_again(settlement.run_at)
                    job.history.append("retry")
                case Outcome.RELEASED:
                    job.queue_again(settlement.run_at)
                    job.attempts -= 1
                    job.releases += 1
                case Outcome.HANDED_BACK | Outcome.CANCEL_SEEN:
                    job.queue_again(settlement.run_at or None)
                    job.attempts -= 1
        job.holder, job.started = None, False
        if (slot := self.slots.pop(id(settlement.lease), None)) is not None:
            self.members[holder].clear_started(slot)

    @rule(job_id=jobs, what=st.sampled_from(["cancel", "redrive", "redrive", "discard"]))
    def intervene(self, job_id: str, what: str) -> None:
        match what:
            case "cancel":
                self.cancel(job_id)
            case "redrive":
                self.redrive(job_id)
            case _:
                self.discard(job_id)

    def cancel(self, job_id: str) -> None:
        job = self.model.get(job_id)
        cancels = job is not None and not job.state.finished
        cancelled = self.run(self.queue.cancel(JobFilter(ids=[job_id])))
        assert cancelled == ([job_id] if cancels else [])
        if job and cancels:
            job.state = JobState.CANCELLED

    def redrive(self, job_id: str) -> None:
        job = self.model.get(job_id)
        redrives = job is not None and job.state is JobState.FAILED
        redriven = self.run(self.queue.redrive(JobFilter(ids=[job_id])))
        assert redriven == ([job_id] if redrives else [])
        if job and redrives:
            job.attempts = job.crashes = job.releases = 0
            job.lease = None
            job.history.append("redriven")
            job.queue_again(time.time())

    def discard(self, job_id: str) -> None:
        job = self.model.get(job_id)
        discards = job is not None and job.state is JobState.FAILED
        discarded = self.run(self.queue.discard(JobFilter(ids=[job_id])))
        assert discarded == ([job_id] if discards else [])
        if discards:
            del self.model[job_id]

    @rule(member=MEMBERS)
    def lapse(self, member: int) -> None:
        """A process is frozen past its lease; another notices."""
        self.ledger.lapse(self.members[member])
        self.run(self.members[1 - member].upkeep())
        assert self.members[member].renew({}, []) is False
        self.replace_member(member)

    @precondition(lambda self: not any(job.started for job in self.model.values()))
    @rule(member=MEMBERS)
    def leave(self, member: int) -> None:
        self.replace_member(member)

    def replace_member(self, member: int) -> None:
        self.run(self.ledger.leave(self.members[member]))
        for job in self.model.values():
            if job.holder == member:
                job.lose_holder()
        self.members[member] = self.run(self.ledger.join(self.queue))

    @invariant()
    def stored_is_as_the_model_says(self) -> None:
        found = {job.id: job for job in self.run(self.queue.find(JobFilter(), 1000))}
        assert found.keys() == self.model.keys()
        for job_id, model in self.model.items():
            self.check(found[job_id], model)
        held = {
            member: sorted(
                job.lease.seq
                for job in self.model.values()
                if job.holder == member and job.lease and job.state is JobState.CANCELLED
            )
            for member in (0, 1)
        }
        for member, seqs in held.items():
            assert sorted(self.run(self.members[member].cancelled())) == seqs

    def check(self, job: Job, model: ModelJob) -> None:
        assert (job.state, job.attempts, job.releases) == (
            model.state,
            model.attempts,
            model.releases,
        )
        assert job.key == model.key
        assert [record.outcome for record in job.history] == model.history
        assert job.attempts <= model.max_retries + 1
        assert len(model.results) <= 1
        assert job.result == (model.results[0] if model.results else None)
        assert (job.finished_at is not None) == job.state.finished

    @invariant()
    def work_is_left_as_long_as_the_model_says(self) -> None:
        left = any(not job.state.finished or job.holder is not None for job in self.model.values())
        assert self.run(self.queue.work_left(None)) == left


@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", sorted(SUITE))
@pytest.mark.parametrize("share", [0.25, pytest.param(1.0, marks=pytest.mark.long)])
def test_every_life_of_jobs_follows_the_model(backend: str, share: float) -> None:
    class OnBackend(LifeCycle):
        def __init__(self) -> None:
            super().__init__(backend)

    examples = 1000 if EXPLORE else round(EXAMPLES[backend] * share)
    run_state_machine_as_test(OnBackend, settings=settings(SETTINGS, max_examples=examples))
