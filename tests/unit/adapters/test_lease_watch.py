"""Who judges a lease: a process that has watched it, by its own clock."""

import pytest

from penstock import runtime
from penstock.adapters.lease_watch import LeaseWatch, MemberLook

LEASE = 15.0
LOOK = 0.5


class Watching:
    """A process that looks at one other, and the clock that it does so by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(runtime, "monotonic", lambda: self.now)
        self._watch = LeaseWatch()

    def looks(self, renewed: float, after: float = LOOK) -> bool:
        """Whether the other has lapsed, if it was renewed last at this time."""
        self.now += after
        return bool(self._watch.lapsed([MemberLook(1, "a.life", renewed, LEASE)]))


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Watching:
    return Watching(monkeypatch)


def test_lease_runs_out_after_its_time_and_one_look_at_the_latest(watching: Watching) -> None:
    watching.looks(1.0)
    seen = watching.now
    while not watching.looks(1.0):
        assert watching.now < seen + LEASE
    assert seen + LEASE <= watching.now <= seen + LEASE + LOOK


@pytest.mark.parametrize("jump", [7200.0, -7200.0])
def test_renewal_counts_whatever_the_clock_says(watching: Watching, jump: float) -> None:
    for n in range(200):
        renewed = n // 10 * 5.0 + (jump if n > 50 else 0.0)
        assert not watching.looks(renewed)


def test_who_has_just_come_takes_nothing(watching: Watching) -> None:
    watching.now += 3600
    assert not watching.looks(renewed=1.0)


def test_who_stood_still_itself_gives_others_the_time_to_renew(watching: Watching) -> None:
    for _ in range(10):
        assert not watching.looks(1.0)
    assert not watching.looks(1.0, after=3600.0), "they may have stood still as well"
    assert not watching.looks(1.0)
    assert not watching.looks(2.0), "and go on"


def test_who_looks_seldom_still_notices(watching: Watching) -> None:
    looks = [watching.looks(1.0, after=3 * LEASE) for _ in range(4)]
    assert looks == [False, False, False, True]


def test_another_process_with_the_same_number_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(runtime, "monotonic", lambda: now)
    watch = LeaseWatch()
    for n in range(40):
        now += LOOK
        life = f"{n // 20}.life"
        assert not watch.lapsed([MemberLook(1, life, 1.0, LEASE)])
