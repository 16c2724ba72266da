"""Forecasts: when the backlog is done, what it costs, and what holds it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.forecast.forecast import Forecast, ForecastLine
from penstock.forecast.words import in_words
from penstock.wire.view import WireView, described, made

described(ForecastLine)


@dataclass(slots=True, frozen=True)
class ForecastView(WireView):
    """When the backlog is done, as things stand or as they were asked about."""

    at: float
    """When it was made, in seconds since 1970."""
    jobs: int
    """Queued and running jobs."""
    stays: int
    """Of them those that are not done, whatever time passes."""
    done_at: float | None
    """When the last of the others is done. None: none of them ever is."""
    margin_seconds: float
    """It may be so much sooner or later."""
    tokens: int
    """What the jobs use, as far as they say so."""
    cost: float | None
    """Money, in the currency of the lanes. None: no job says what it costs."""
    bounds: bool
    """Tokens and cost are what jobs reserve, because too little is known of what they use."""
    uncounted_kinds: Sequence[str]
    """Kinds whose tokens and cost are not counted: they reserve nothing with their starts, and too
    little is known of what their permits use."""
    workers: int
    """Workers in all processes that it counts with."""
    unknown_kinds: Sequence[str]
    """Kinds of which no run is known: a second each is assumed."""
    lines: Sequence[ForecastLine]
    """By kind and lane: those that are never done, then the one that is done last."""
    words: Sequence[str]
    """The same in sentences; times are in the time zone of the server."""


def forecast_view(forecast: Forecast) -> ForecastView:
    return made(ForecastView, forecast, words=in_words(forecast))
