"""Real use of tokens and money by jobs of a kind, as the ledger tells it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.forecast.durations import ENOUGH
from penstock.ports.backlog import PAST_RUNS, Backlog, PastRun
from penstock.ports.ledger import DAY, UsageSum


class KindUse(NamedTuple):
    """The real use of jobs of a kind, on average."""

    tokens: float
    cost: float
    share: float | None
    """Of what they had reserved; None: they reserve nothing."""


def first_day(past: Sequence[PastRun], at: float) -> int | None:
    """The first day (since 1970, in UTC) of which all jobs are among these that have ended since,
    as far as can be told; None: there is none. Sums of the ledger are of whole days."""
    if not past:
        return None
    first, today = int(min(one.ended_at for one in past) // DAY), int(at // DAY)
    later = [one for one in past if one.ended_at >= (first + 1) * DAY]
    if first < today and 2 * len(later) >= len(past):
        return first + 1
    return first if len(past) < PAST_RUNS else None


def real_use(backlog: Backlog, usage: Sequence[UsageSum], since: int) -> Mapping[str, KindUse]:
    """By kind, of jobs that have ended since that day, which is also that of the sums. Of those
    that run the ledger has what they have reserved."""
    runs: dict[str, list[PastRun]] = defaultdict(list)
    for one in backlog.past:
        if one.ended_at >= since * DAY:
            runs[one.kind].append(one)
    found = {}
    for spent in usage:
        ended = runs.get(spent.name, [])
        if len(ended) < ENOUGH:
            continue
        tokens = sum(one.amount.tokens for one in ended)
        cost = sum(one.amount.cost for one in ended)
        open_ = [job.amount for job in backlog.running if job.kind == spent.name]
        real_tokens = max(0, spent.tokens - sum(amount.tokens for amount in open_))
        real_cost = max(0, spent.cost - sum(amount.cost for amount in open_))
        share = real_cost / cost if cost else real_tokens / tokens if tokens else None
        found[spent.name] = KindUse(real_tokens / len(ended), real_cost / len(ended), share)
    return found
