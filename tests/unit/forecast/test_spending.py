"""Real use of jobs, by the ledger."""

import pytest

from penstock.forecast.forecast import Forecast
from penstock.forecast.spending import KindUse, first_day, real_use
from penstock.forecast.words import in_words
from penstock.model.amounts import Amounts
from penstock.ports.backlog import PAST_RUNS, Backlog, PastRun, RunningJob
from penstock.ports.ledger import DAY, UsageSum
from tests.unit.forecast.test_forecaster import NOW, forecaster, past, waiting

TODAY = int(NOW // DAY)


def run(kind: str = "ask", days_ago: float = 0.0, amount: Amounts | None = None) -> PastRun:
    return PastRun(kind, "", NOW - days_ago * DAY, 1.0, 1, amount or Amounts())


def spent(kind: str, requests: int, tokens: int, cost: int) -> UsageSum:
    return UsageSum(kind, requests, tokens, 0, 0, cost, 0, 0)


def test_sums_of_days_are_taken_from_the_first_of_which_all_jobs_are_known() -> None:
    assert first_day([], NOW) is None
    assert first_day([run()], NOW) == TODAY
    assert first_day([run(), run(days_ago=1.0)], NOW) == TODAY
    assert first_day([run(), *[run(days_ago=1.0)] * 9], NOW) == TODAY - 1
    assert first_day([run(days_ago=1.0), *[run()] * PAST_RUNS], NOW) == TODAY
    assert first_day([run()] * PAST_RUNS, NOW) is None


def test_the_share_is_of_what_the_same_jobs_had_reserved() -> None:
    runs = [run(amount=Amounts(100, 60, 40, 1000))] * 40 + [run("plain")] * 20 + [run("rare")]
    usage = [spent("ask", 40, 2000, 16_000), spent("plain", 60, 600, 60), spent("rare", 1, 1, 1)]
    backlog = Backlog(NOW, [], [], [], runs)
    assert real_use(backlog, usage, TODAY) == {
        "ask": KindUse(50.0, 400.0, 0.4),
        "plain": KindUse(30.0, 3.0, None),
    }
    assert real_use(backlog, usage, TODAY + 1) == {}
    running = RunningJob("ask", "default", "", 50, "a", NOW, Amounts(200, 120, 80, 2000))
    use = real_use(backlog._replace(running=[running]), usage, TODAY)
    assert use["ask"] == KindUse(45.0, 350.0, 0.35)


def test_a_forecast_tells_what_jobs_use_and_not_what_they_reserve() -> None:
    lanes = {"llm": {"cost_per_day": 100.0}}
    jobs = [waiting("ask", 100, "llm", each=Amounts(100, 60, 40, 1000)), waiting("plain", 50)]
    runs = past("ask", "llm", 1.0) + past("plain", "", 1.0)
    known = {"ask": KindUse(50.0, 400.0, 0.4), "plain": KindUse(30.0, 2000.0, None)}
    *_, told = forecaster(jobs, lanes, runs, spent=known).run()
    assert isinstance(told, Forecast)
    assert told.cost == pytest.approx(100 * 0.0004 + 50 * 0.002)
    assert told.tokens == 100 * 40 + 50 * 30
    assert not told.bounds


def test_kinds_of_whose_permits_too_little_is_known_are_named() -> None:
    jobs = [waiting("ask", 10, "llm", each=Amounts(100)), waiting("known", 5), waiting("new", 5)]
    known = {"known": KindUse(30.0, 2000.0, None)}
    lanes = {"llm": {"cost_per_day": 100.0}}
    spenders = ["ask", "known", "new", "gone"]
    *_, told = forecaster(jobs, lanes, spent=known, spenders=spenders).run()
    assert isinstance(told, Forecast)
    assert told.uncounted_kinds == ["new"]
    assert any("not counted: tokens and cost of new," in line for line in in_words(told))
