"""Probes are logged when what they find changes."""

import logging
from typing import Any, cast

import pytest

from penstock.engine import prober
from penstock.engine.prober import FORGOTTEN_SECONDS, Prober


class Troubled:
    """A member with one lane in trouble."""

    def __init__(self) -> None:
        self.found: list[bool] = []
        self.member = self  # the membership as well

    async def probes(self) -> list[tuple[str, str]]:
        return [("api", "127.0.0.1:9")]

    async def probed(self, lane: str, ok: bool) -> None:
        self.found.append(ok)


async def test_outage_is_logged_when_it_begins_and_ends_and_not_at_every_probe(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.lanes")
    up, clock = False, 0.0

    async def reachable(where: str) -> bool:
        return up

    monkeypatch.setattr(prober, "reachable", reachable)
    monkeypatch.setattr("penstock.runtime.monotonic", lambda: clock)
    member = Troubled()
    probes = Prober()

    async def probe(times: int) -> list[str]:
        nonlocal clock
        caplog.clear()
        for _ in range(times):
            clock += 3.0
            await probes.probe(cast(Any, member), await member.probes())
        return [one.getMessage().rpartition(" ")[2] for one in caplog.records]

    assert await probe(200) == ["failed"], "also where it lasts longer than is remembered"
    up = True
    assert await probe(5) == ["passed"]
    clock += FORGOTTEN_SECONDS
    assert await probe(5) == ["passed"], "the next outage is news"
    assert len(member.found) == 210, "the lane learns of each"
