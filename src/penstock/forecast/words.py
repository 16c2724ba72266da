"""Forecasts in plain words."""

from __future__ import annotations

from datetime import datetime

from penstock.forecast.forecast import Forecast, ForecastLine
from penstock.forecast.holds import Hold

DAY = 86400.0
NEVER = {
    Hold.PAUSED: "paused: never until it is resumed",
    Hold.CREDENTIALS: "its credentials were rejected: never until it is resumed",
    Hold.BREAKER: "its breaker is open: never until its service is back",
    Hold.NOBODY: "no worker process handles them: never until one does",
    Hold.SIGNAL: "wait for a signal: never until it comes",
    Hold.HORIZON: "not within a year",
}
WHILE = {
    Hold.RATE: "held by its rate",
    Hold.SLOTS: "held by its slots",
    Hold.TOKENS: "held by its tokens",
    Hold.DAY: "held by its daily limit",
    Hold.BLOCKED: "held by a 429",
    Hold.WORKERS: "held by workers, who are too few",
}


def in_words(forecast: Forecast) -> list[str]:
    """What to tell people: the whole in a line, then a line for each kind and lane, then what was
    assumed."""
    if not forecast.jobs:
        return ["nothing is queued or running"]
    binding = forecast.binding
    said = [_whole(forecast)]
    said += [_line(line, forecast.at, binds=line is binding) for line in forecast.lines]
    if not forecast.workers:
        said.append("no worker process is alive; --processes 1 asks what one would do")
    if forecast.unknown_kinds:
        kinds = ", ".join(forecast.unknown_kinds)
        said.append(f"assumed, because none has run: a second each for {kinds}")
    if forecast.uncounted_kinds:
        kinds = ", ".join(forecast.uncounted_kinds)
        said.append(
            f"not counted: tokens and cost of {kinds}, of whose permits too little is known"
        )
    if forecast.bounds:
        said.append("tokens and cost are what jobs reserve: too little is known of what they use")
    return said


def _whole(forecast: Forecast) -> str:
    done = forecast.jobs - forecast.stays
    parts = []
    if forecast.done_at is not None:
        when = _when(forecast.done_at, forecast.margin_seconds, forecast.at)
        parts.append(f"{_jobs(done)}: done {when}{_spent(forecast)}")
    if forecast.stays:
        parts.append(f"{_jobs(forecast.stays)} never, as things stand")
    return "; ".join(parts)


def _line(line: ForecastLine, at: float, *, binds: bool) -> str:
    where = f"lane {line.lane}" if line.lane else "no lane"
    where += " binds: " if binds else ": "
    parts = []
    if line.done_at is not None:
        rate = "" if line.per_minute is None else f" at {_number(line.per_minute)} a minute"
        held = WHILE.get(line.held_by, "")
        if line.held_in and line.held_in != line.lane:
            held = held.replace("its", f"lane {line.held_in}'s")
        parts.append(f"{line.jobs:,} {line.kind}{rate}" + (f", {held}" if held else ""))
        parts.append(f"done {_when(line.done_at, line.margin_seconds, at)}{_spent(line)}")
    if line.stays:
        why = NEVER.get(line.held_by, "never, as things stand")
        if line.held_in and line.held_in != line.lane:
            why = f"lane {line.held_in} is in the way, {why}"
        parts.append(f"{line.stays:,} {line.kind}, {why}")
    return where + "; ".join(parts)


def _jobs(count: int) -> str:
    return f"{count:,} job" + ("" if count == 1 else "s")


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _spent(one: Forecast | ForecastLine) -> str:
    said = f"; {one.tokens:,} tokens" if one.tokens else ""
    return said if one.cost is None else f"{said}; {one.cost:,.2f}"


def _when(then: float, margin: float, at: float) -> str:
    """Local time: with its day unless it is today, and with seconds where they matter."""
    local, now = datetime.fromtimestamp(then).astimezone(), datetime.fromtimestamp(at).astimezone()
    text = local.strftime("%H:%M:%S" if margin < 60 else "%H:%M")
    if local.date() != now.date():
        far = then - at > 6 * DAY
        text = f"{local:%Y-%m-%d} {text}" if far else f"{local:%a} {text}"
    return f"{text} +-{_seconds(margin)}"


def _seconds(seconds: float) -> str:
    for size, unit in ((60, "s"), (60, "min"), (48, "h")):
        if seconds < size - 0.5:
            return f"{seconds:.0f} {unit}"
        seconds /= 60 if unit != "h" else 24
    return f"{seconds:.0f} d"
