"""Kinds as labels of metrics: bounded, whatever callers make up."""

from penstock.model.job import JobState
from penstock.ports.operators import KindCounts, ProcessInfo
from penstock.server.metrics import MAX_OTHERS, OTHER, KindLabels
from penstock.server.queue_metrics import QueueSnapshot

QUEUED = JobState.QUEUED


def look(*counts: KindCounts, handled: tuple[str, ...] = ()) -> QueueSnapshot:
    process = ProcessInfo("p", "here", 1, handled, 1, 0.0, 0.0, 0.0)
    return QueueSnapshot(counts, [process] if handled else [], [], {}, 0, 0.0)


def kind(name: str, queued: int = 1, oldest: float = 5.0) -> KindCounts:
    return KindCounts(name, {QUEUED: queued}, oldest)


def test_a_few_kinds_are_told_as_they_are() -> None:
    seen = look(kind("a"), kind("b"))
    assert KindLabels(["a"]).bounded(seen) == seen


def test_of_many_kinds_those_that_are_handled_are_told_and_some_others() -> None:
    made_up = [kind(f"x{n}", queued=n, oldest=float(n)) for n in range(1, 1001)]
    labels = KindLabels(["mine"])
    told = labels.bounded(look(kind("mine"), kind("theirs"), *made_up, handled=("theirs",)))
    names = [one.kind for one in told.counts]
    assert len(names) == len(set(names)) == MAX_OTHERS + 3
    assert {"mine", "theirs", "x1000", "x901", OTHER} <= set(names)
    other = told.counts[-1]
    assert (other.kind, other.oldest_queued_at) == (OTHER, 1.0)
    assert other.states == {QUEUED: sum(range(1, 901))}
    assert sum(one.states[QUEUED] for one in told.counts) == 2 + sum(range(1, 1001))


def test_labels_stay_the_same_whatever_comes() -> None:
    labels = KindLabels([])
    first = labels.bounded(look(*(kind(f"x{n}") for n in range(200))))
    more = [kind(f"y{n}", queued=99) for n in range(200)]
    second = labels.bounded(look(*(kind(f"x{n}") for n in range(200)), *more))
    assert {one.kind for one in first.counts} == {one.kind for one in second.counts}


def test_a_kind_that_is_called_other_is_told_with_the_rest() -> None:
    labels = KindLabels([OTHER])
    told = labels.bounded(look(kind(OTHER, 7), *(kind(f"x{n}") for n in range(MAX_OTHERS + 5))))
    assert [one.states[QUEUED] for one in told.counts if one.kind == OTHER] == [12]
