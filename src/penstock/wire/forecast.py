"""Forecasts: when the backlog is done, what it costs, and what holds it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.forecast.forecast import Forecast, ForecastLine
from penstock.forecast.words import in_words
from penstock.wire.view import WireView, described, made

described(ForecastLine)


@dataclass(slots=True, frozen=True)
class ForecastView(Forecast, WireView):
    """When the backlog is done, as things stand or as they were asked about."""

    words: Sequence[str] = ()
    """The same in sentences; times are in the time zone of the server."""


def forecast_view(forecast: Forecast) -> ForecastView:
    return made(ForecastView, forecast, words=in_words(forecast))
