"""Schedules: rows, and those in the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.schedule import ScheduleInfo
from penstock.wire.view import ListPage, described

described(ScheduleInfo)


@dataclass(slots=True, frozen=True)
class SchedulePage(ListPage):
    schedules: Sequence[ScheduleInfo]
