"""The server's clock, as a process knows it."""

import pytest

from penstock import runtime
from penstock.adapters.queue_clock import QueueClock


class Time:
    """A monotonic clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(runtime, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def ask(queue_clock: QueueClock, clock: Time, server: float, seconds: float) -> None:
    """A question whose answer takes so long; the server looks at its clock half-way."""
    sent = queue_clock.local()
    clock.now += seconds
    queue_clock.sample(sent, server + seconds / 2)


def test_it_is_the_servers_whatever_this_machine_thinks(clock: Time) -> None:
    queue_clock = QueueClock()
    ask(queue_clock, clock, 5000.0, 0.01)

    assert queue_clock.now() == pytest.approx(5000.01)
    clock.now += 10
    assert queue_clock.now() == pytest.approx(5010.01)


def test_slow_answer_does_not_replace_a_quick_one(clock: Time) -> None:
    queue_clock = QueueClock()
    ask(queue_clock, clock, 5000.0, 0.001)
    sent = queue_clock.local()
    clock.now += 2.0
    queue_clock.sample(sent, 5000.001)  # the answer was held up on its way back

    assert queue_clock.now() == pytest.approx(5002.001, abs=0.002)


def test_clock_that_is_set_on_the_server_is_followed_in_time(clock: Time) -> None:
    queue_clock = QueueClock()
    ask(queue_clock, clock, 5000.0, 0.001)
    clock.now += 60
    ask(queue_clock, clock, 9000.0, 0.01)

    assert queue_clock.now() == pytest.approx(9000.01)
