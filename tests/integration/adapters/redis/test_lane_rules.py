"""The lane rules exist twice, in Python and in Lua: any sequence of them must come to the same."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import penstock
from penstock import runtime
from penstock.adapters.redis import scripts
from penstock.adapters.redis.scripts import assembled
from penstock.lanes import (
    amounts,
    breaker,
    learnt,
    limits,
    permit,
    state,
    usual_amounts,
    verdict,
    waiting,
)
from penstock.lanes.amounts import Booking
from penstock.lanes.breaker import Fault
from penstock.lanes.limits import grant, next_chance
from penstock.lanes.state import LaneState
from penstock.model.amounts import NOTHING, Amounts
from penstock.ports.lanes import News, Permit, PermitRequest, Report
from penstock.ports.queue import Lease, Outcome, Settlement
from tests.support.database_servers import redis_url
from tests.support.leases import lease

RULES = Path(__file__).parents[3] / "support" / "lane_rules.lua"
LUA = Path(penstock.__file__).parent / "adapters" / "redis" / "lua" / "common"
NEEDS = (
    "base lines jobs log lane_state usual_amounts amounts learnt limits breaker verdict permit"
    " waiting"
)
START = 1_800_000_000.25
LANES = ("child", "parent")

JOBS = st.integers(1, 6)
SECONDS = st.sampled_from([0.0, 0.01, 0.04, 0.3, 1.0, 7.5, 400.0, 50_000.0])
QUESTION = st.booleans()
SLACK = st.sampled_from([0.0, 0.02, 0.3])
HELD = st.sampled_from([[], ["child"], ["parent"], ["child", "parent"]])
REPORTS = st.none() | st.builds(
    Report,
    st.sampled_from(News),
    st.none() | SECONDS,
    st.none() | st.sampled_from(LANES),
    st.none() | st.just("127.0.0.1:9"),
    st.booleans(),
    st.none() | SECONDS,
    st.none() | st.sampled_from([0.0, 0.01, 0.1, 0.3, 7.5]),
    st.none()
    | st.tuples(
        st.sampled_from([-1.0, 0.0, 3.0, 900.0]),
        st.sampled_from([0.0, 1.5, 60.0]),
        st.sampled_from([-1.0, 0.0, 800.0, 90_000.0]),
        st.sampled_from([0.5, 30.0]),
        st.sampled_from([0.0, 150.0, 2000.0]),
    ),
)


NO_OUTAGE: st.SearchStrategy[dict[str, Any]] = st.just({})
AN_OUTAGE: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "step": st.integers(1, 3),
        "retry_at": st.just(START + 2),
        "trial": st.none() | st.integers(1, 3),
        "trial_holder": st.integers(1, 2),
        "last_trial": st.none() | st.integers(1, 3),
        "tried": st.sampled_from(["[]", "[1]", "[1, 2, 3, 4]"]),
        "probe_ok": st.sampled_from([None, 0, 1]),
    }
)


NO_AMOUNTS: st.SearchStrategy[str | None] = st.none()
AMOUNTS_COUNTED = st.builds(
    lambda window, day, **said: json.dumps(
        {name: value for name, value in {**window, **day, **said}.items() if value is not None}
    ),
    st.just({})
    | st.fixed_dictionaries(
        {
            "interval": st.sampled_from([1.0, 7.0, 60.0]),
            "tokens": st.none() | st.sampled_from([100, 1000]),
            "input": st.none() | st.just(60),
            "output": st.none() | st.just(90),
        }
    ),
    st.fixed_dictionaries(
        {
            "tokens_day": st.none() | st.sampled_from([200, 3000]),
            "cost_day": st.none() | st.just(500),
        }
    ),
    refills=st.none() | st.just(True),
    alone=st.none() | st.just(True),
)
AMOUNTS = st.builds(
    Amounts,
    *[st.sampled_from([0, 1, 7, 40, 99, 150]) for _ in range(3)],
    st.sampled_from([0, 3, 100, 600]),
)


@st.composite
def a_lane(draw: st.DrawFn, name: str, parent: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "parent": parent,
        "spacing": draw(st.sampled_from([0.0, 0.102, 3.06])),
        "tolerance": draw(st.sampled_from([0.005, 1.5, 60.0])),
        "max_parallel": draw(st.sampled_from([1, 2, 50])),
        "per_day": draw(st.none() | st.sampled_from([2, 10])),
        "timeout": draw(st.none() | st.sampled_from([2.5, 30.0])),
        "breaker_cap": draw(st.sampled_from([3.0, 300.0])),
        "credentials": draw(st.sampled_from([0, 1])),
        "amounts": draw(NO_AMOUNTS | AMOUNTS_COUNTED),
        "auto": draw(st.none() | st.sampled_from(["[1, 100]", "[2, 9]"])),
        "limits": draw(st.none() | st.just('{"max_parallel": 3}')),
        **draw(NO_OUTAGE | AN_OUTAGE),
    }


@st.composite
def a_step(draw: st.DrawFn) -> dict[str, Any]:
    rule = draw(st.sampled_from(["learn", "learn", "learn", *_PYTHON]))
    step: dict[str, Any] = {"rule": rule, "after": draw(SECONDS), "jitter": draw(st.floats(0.8, 1))}
    match rule:
        case "grant":
            step |= {"wanted": draw(JOBS), "ahead": draw(SECONDS), "held": draw(HELD)}
            step |= {"question": draw(QUESTION), "slack": draw(SLACK)}
        case "set_back":
            step["ahead"] = draw(SECONDS) - 1.0
        case "repace":
            step["old"] = draw(st.sampled_from([0.0, 0.102, 3.06]))
        case "room":
            step["wanted"] = draw(JOBS)
        case "starts":
            step["resumes"] = draw(st.lists(st.booleans(), min_size=1, max_size=4))
            step["slack"] = draw(SLACK)
            if draw(st.booleans()):
                step["bookings"] = [
                    (draw(JOBS), draw(st.integers(0, 1)), draw(AMOUNTS)) for _ in step["resumes"]
                ]
        case "next_chance":
            step["amount"] = draw(st.none() | AMOUNTS)
        case "book":
            step["booking"] = (-draw(JOBS), 0, draw(AMOUNTS))
            step |= {"ahead": draw(SECONDS), "slack": draw(SLACK)}
        case "settle":
            step |= {"ref": -draw(JOBS), "used": draw(st.none() | AMOUNTS)}
        case "room_for":
            step["amount"] = draw(AMOUNTS)
        case "chosen":
            step["seqs"] = draw(st.lists(JOBS, min_size=1, unique=True))
        case "learn":
            job = draw(JOBS)
            ref = draw(st.sampled_from([job, -job]))
            step |= {"holder": draw(st.integers(1, 2)), "ref": ref, "job": job, "token": 1}
            step["report"] = draw(REPORTS)
        case "teach":
            step |= {"report": draw(REPORTS), "full": draw(st.booleans()), "times": 1}
        case "probed":
            step["ok"] = draw(st.booleans())
        case "permit":
            request = PermitRequest(
                "child",
                -draw(JOBS),
                draw(st.booleans()),
                draw(SECONDS),
                draw(JOBS),
                draw(st.sampled_from([False, False, True])),
                draw(st.sampled_from([0.0, 0.02, 3.0])),
                draw(QUESTION),
                draw(SLACK),
                draw(st.none() | AMOUNTS),
                draw(st.sampled_from(["", "long/kind"])),
            )
            step |= {"holder": draw(st.integers(1, 2)), "held": draw(HELD), "request": request}
        case "judge":
            step |= {
                "outcome": draw(st.sampled_from(Outcome)),
                "report": draw(REPORTS),
                "lane": draw(st.sampled_from(["", *LANES])),
                "fault": draw(st.sampled_from(Fault)),
                "run_at": draw(SECONDS),
            }
    return step


@st.composite
def a_burst(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Requests that end alike, one after the other: an outage, a limit, a recovery."""
    report = draw(REPORTS)
    after = draw(st.sampled_from([0.0, 0.3, 7.5, 290.0, 310.0]))
    count = draw(st.sampled_from([2, 3, 4, 20, 33]))
    most = draw(st.sampled_from([1, 3, 6, 50]))
    permits, own, probes = (
        draw(st.sampled_from([0, 1, 2])),
        draw(st.booleans()),
        draw(st.booleans()),
    )
    common = {"after": 0.0, "jitter": draw(st.floats(0.8, 1)), "holder": draw(st.integers(1, 2))}
    steps: list[dict[str, Any]] = []
    for n in range(count):
        job = 1 + n % most
        if permits and n % permits == 0:
            request = PermitRequest("child", -job, False, 1.0, job, question=n % 3 == 0)
            held = ["child"] if own else []
            steps.append({**common, "rule": "permit", "held": held, "request": request})
        who = {"ref": job if own else -job, "job": job, "token": n, "report": report}
        steps.append({**common, "rule": "learn", "after": after, **who})
        steps.append({**common, "rule": "chosen", "seqs": [1, 2, 3, 4]})
        lane = ["", *LANES][n % 3]
        judged = {"outcome": Outcome.RETRY, "report": report, "lane": lane, "run_at": 1.0}
        steps.append({**common, "rule": "judge", "fault": Fault.JOB, **judged})
        if probes:
            steps.append({**common, "rule": "probed", "ok": n % 3 == 2})
    return steps


@st.composite
def a_spree(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Requests that reserve, and are settled some time after."""
    common = {"jitter": 1.0}
    steps: list[dict[str, Any]] = []
    for n in range(draw(st.sampled_from([3, 20, 70]))):
        after = draw(st.sampled_from([0.0, 0.1, 0.4, 1.0, 9.0, 3000.0]))
        booking: tuple[Any, ...] = (-n, 0, draw(AMOUNTS))
        slack = draw(SLACK)
        if draw(st.booleans()):
            booking = (-n, 0, None, draw(st.sampled_from(["short", "long/kind"])))
        steps.append(
            {
                **common,
                "rule": "book",
                "after": after,
                "booking": booking,
                "ahead": 1.0,
                "slack": slack,
            }
        )
        steps.append({**common, "rule": "room_for", "after": 0.0, "amount": draw(AMOUNTS)})
        if draw(st.booleans()):
            ref = -draw(st.integers(0, n))
            paid = {"ref": ref, "used": draw(st.none() | AMOUNTS)}
            steps.append({**common, "rule": "settle", "after": 0.05, **paid})
    return steps


@st.composite
def a_lesson(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Requests that tell how long they took: many alike, then others."""
    common = {"jitter": 1.0, "holder": 1, "rule": "teach"}
    steps: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 4))):
        took = draw(st.sampled_from([0.05, 0.1, 0.11, 0.3]))
        full, times = draw(st.booleans()), draw(st.sampled_from([1, 9, 40, 300]))
        report = Report(News.SUCCESS, took=took)
        one = {**common, "after": times * took, "full": full}
        steps.append({**one, "times": times, "report": report})
        steps.append({**one, "times": 1, "report": draw(REPORTS)})
    return steps


STEPS = st.lists(
    a_burst() | a_spree() | a_lesson() | a_step().map(lambda step: [step]), min_size=1, max_size=6
)


def _grant(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    options = {name: step[name] for name in ("ahead", "held", "question", "slack")}
    return grant(lanes, step["wanted"], now, **options)


def _starts(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    if "bookings" not in step or not any(lane.amounts is not None for lane in lanes):
        return limits.starts(lanes, step["resumes"], now, step["slack"])
    bookings = [
        Booking(ref, token, amount, amounts.refusal(lanes, amount))
        for ref, token, amount in step["bookings"]
    ]
    return amounts.starts(lanes, step["resumes"], bookings, now, step["slack"])


def _book(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    ref, token, amount, *kind = step["booking"]
    booking = Booking(ref, token, amount)
    if kind and any(lane.amounts is not None for lane in lanes):
        booking = amounts.booking(lanes, ref, token, None, kind[0])
    elif kind:
        booking = Booking(ref, token, NOTHING)
    start = amounts.book(lanes, booking, now, now + step["ahead"], step["slack"])
    return [amounts.tolerance(lanes), *([] if start is None else [start])]


def _settle(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    return [amounts.settle(lanes, step["ref"], 0, step["used"], now)]


def _room_for(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    room = amounts.room(lanes, step["amount"], now)
    return ["never" if room.at == math.inf else room.at, room.lane, room.why]


def _next_chance(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    at = next_chance(lanes, now, step["amount"])
    return [] if at is None else [at]


def _repace(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    limits.repace(lanes[0], step["old"], now)
    return []


def _look_again(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    at, waits_for = waiting.look_again(lanes, now)
    return ["none" if at is None else at, waits_for or "none"]


def _room(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    return [waiting.room(lanes, step["wanted"], now), waiting.choice(lanes[0], step["wanted"])]


def _chosen(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    picked = [waiting.Picked(50, 1.0, lease(seq)) for seq in step["seqs"]]
    return [one.lease.seq for one in waiting.chosen(lanes[0], picked)]


def _learn(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    who = (step["holder"], step["ref"], step["job"], step["token"])
    told = verdict.learn(lanes[0], *who, step["report"], now)
    return [told.fault.value, [list(one) for one in told.spared], told.closed]


def _teach(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    report = step["report"]
    if report is None:
        return []
    for n in range(1, step["times"] + 1):
        if step["full"]:
            lanes[0].in_flight = lanes[0].max_parallel
        verdict.teach(lanes, report, now + n * (report.took or 0.0))
    return [lanes[0].max_parallel]


def _probed(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    lesson = breaker.probed(lanes[0], step["ok"], now)
    return [lesson.fault.value, [list(one) for one in lesson.spared]]


def _permit(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    answer = permit.ask(lanes, step["request"], step["holder"], step["held"], now)
    if isinstance(answer, Permit):
        timeout = "none" if answer.timeout is None else answer.timeout
        void_at = "never" if answer.void_at == math.inf else answer.void_at
        return [answer.start_at, void_at, timeout, answer.trial]
    return [
        answer.lane,
        "none" if answer.until is None else answer.until,
        answer.why,
        answer.give_up,
        answer.refused,
    ]


def _set_back(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    lanes[0].touched_at = now + step["ahead"]
    return [breaker.set_back(lanes[0], now)]


def _judge(lanes: list[LaneState], step: dict[str, Any], now: float) -> Any:
    report, fault = step["report"], step["fault"]
    if report is not None and report.told:
        fault = verdict.fault_of_told(lanes[0], report)
    settlement = Settlement(_lease(step["lane"]), step["outcome"], report=report)
    settlement = settlement._replace(run_at=step["run_at"])
    known = dict.fromkeys(("", *LANES), lanes[0])
    (judged,), spared = verdict.judge([settlement], known, {1: fault}, now)
    if not spared:
        return [False, judged.outcome.value, 0, "none"]
    return [True, judged.outcome.value, judged.run_at, judged.waits_lane or "none"]


_PYTHON = {
    "grant": _grant,
    "starts": _starts,
    "book": _book,
    "settle": _settle,
    "room_for": _room_for,
    "next_chance": _next_chance,
    "repace": _repace,
    "look_again": _look_again,
    "room": _room,
    "chosen": _chosen,
    "learn": _learn,
    "teach": _teach,
    "probed": _probed,
    "permit": _permit,
    "set_back": _set_back,
    "judge": _judge,
}


def _lease(lane: str) -> Lease:
    values: dict[str, Any] = dict.fromkeys(Lease._fields)
    return Lease(**{**values, "seq": 1, "token": 1, "lane": lane})


def _asked(step: dict[str, Any], at: float) -> dict[str, Any]:
    """The step as the Lua side takes it."""
    ask = {name: value for name, value in step.items() if value is not None}
    ask["at"] = at
    if isinstance(ask.get("report"), Report):
        ask["report"] = _report(ask["report"])
    if "request" in ask:
        ask["request"] = scripts.given(step["request"]._asdict())
    if step["rule"] == "judge":
        settlement = {
            "outcome": step["outcome"].value,
            "lane": step["lane"] or None,
            "report": ask.pop("report", None),
            "run_at": step["run_at"],
        }
        ask["settlement"] = {k: v for k, v in settlement.items() if v is not None}
        ask |= {"fault": step["fault"].value, "outcome": step["outcome"].value}
    return ask


def _report(report: Report) -> dict[str, Any]:
    ask = {**report._asdict(), "news": report.news.value}
    return {name: value for name, value in ask.items() if value is not None}


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-6)
    if isinstance(ours, list | tuple) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return bool(ours == theirs)


def _row(lane: LaneState) -> dict[str, Any]:
    lane.keep()
    return {**asdict(lane), "use": None}


def _comparable(lane: dict[str, Any]) -> dict[str, Any]:
    """Without what is none; lists, which are stored as text, as lists."""
    lists = ("tried", "doubted", "refusers", "used", "learnt")
    return {
        name: json.loads(value) if name in lists else value
        for name, value in lane.items()
        if value is not None
    }


@pytest.mark.parametrize("flavour", ["redis", "valkey"])
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    own=a_lane("child", "parent"),
    parent=st.none() | a_lane("parent", None),
    parts=STEPS,
)
def test_lua_and_python_lane_rules_come_to_the_same(
    flavour: str,
    own: dict[str, Any],
    parent: dict[str, Any] | None,
    parts: list[list[dict[str, Any]]],
) -> None:
    steps = [step for part in parts for step in part]
    family = [own] if parent is None else [own, parent]
    lanes = [LaneState(**values) for values in family]
    start = [{k: v for k, v in asdict(lane).items() if v is not None} for lane in lanes]
    now, asked, expected = START, [], []
    for step in steps:
        now += step["after"]
        with runtime.replaced(uniform=lambda least, most, said=step["jitter"]: said):
            answer = _PYTHON[step["rule"]](lanes, step, now)
        asked.append(_asked(step, now))
        expected.append((answer, [_comparable(_row(lane)) for lane in lanes]))
    with redis.Redis.from_url(redis_url(flavour), decode_responses=True) as server:
        ask = json.dumps({"lanes": start, "steps": asked})
        told = server.eval(assembled("#!lua", NEEDS, RULES.read_text()), 1, "{rules}", ask)

    for step, (answer, lanes_after), text in zip(steps, expected, told, strict=True):
        theirs = json.loads(text)
        assert _same(answer, theirs["answer"]), (step, answer, theirs["answer"])
        for lane, other in zip(lanes_after, theirs["lanes"], strict=True):
            other = _comparable(other)
            assert set(lane) == set(other), step
            for name, value in lane.items():
                assert _same(value, other[name]), (step, name, value, other[name])


@pytest.mark.parametrize(
    "module", [amounts, usual_amounts, breaker, learnt, limits, waiting, permit, verdict, state]
)
def test_every_figure_of_the_rules_is_the_same_in_lua(module: ModuleType) -> None:
    name = module.__name__.rsplit(".", 1)[1]
    text = (LUA / f"{'lane_state' if name == 'state' else name}.lua").read_text()
    ours = {k: v for k, v in vars(module).items() if k.isupper() and isinstance(v, int | float)}
    theirs = {k: float(v) for k, v in re.findall(r"\b([A-Z_]{3,}) = ([0-9.e]+)", text)}

    assert theirs
    for figure, value in theirs.items():
        assert ours[figure] == value, figure


def test_every_field_of_a_lane_is_known_to_lua() -> None:
    """One that Lua takes for a number although it is a text would be lost on its way."""
    text = (LUA / "lanes.lua").read_text()
    texts = text[text.index("local TEXTS") : text.index("local FRESH")]
    for field in fields(LaneState):
        if "str" in str(field.type) and field.name != "name":
            assert f"{field.name} = true" in texts, field.name
