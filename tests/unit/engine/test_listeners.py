"""What a process hears of other processes, and what it finds out without having heard it."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from penstock.engine.claims import Claims
from penstock.engine.events import EngineEvents
from penstock.engine.listeners import CancelListener
from penstock.engine.membership import MemberInbox
from penstock.engine.run import Interrupt
from penstock.engine.running import Running
from penstock.engine.settler import Settler
from penstock.model.settings import EngineConfig
from tests.support.leases import lease


class DeafListener:
    """Every wake-up is lost: only the time-out ends a wait."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()

    async def wait(self, timeout: float | None) -> bool:
        self.waits.set()
        await asyncio.sleep(0 if timeout is not None else 3600)
        return False

    def ring(self) -> None: ...

    def close(self) -> None: ...


class Bell:
    """Rings only for itself: nothing is heard of other processes."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    async def wait(self, timeout: float | None) -> bool:
        await self._rung.wait()
        self._rung.clear()
        return True

    def ring(self) -> None:
        self._rung.set()

    def close(self) -> None: ...


async def test_cancel_whose_wakeup_was_lost_reaches_a_run_that_began_while_idle() -> None:
    listener, running, claims = DeafListener(), Running(EngineEvents()), SimpleNamespace()
    interrupted: asyncio.Future[tuple[Any, Interrupt]] = asyncio.get_running_loop().create_future()
    run = SimpleNamespace(lease=lease(7))

    async def cancelled() -> list[int]:
        return [7]

    def interrupt(run: Any, why: Interrupt) -> None:
        if not interrupted.done():
            interrupted.set_result((run, why))

    parts: dict[str, Any] = {
        "events": EngineEvents(),
        "queue": SimpleNamespace(listen=lambda topic: listener),
        "membership": SimpleNamespace(member=SimpleNamespace(cancelled=cancelled)),
        "watchdog": SimpleNamespace(interrupt=interrupt),
    }
    service = CancelListener(poll_seconds=1.0, claims=cast(Any, claims), running=running, **parts)
    service.start()
    try:
        await listener.waits.wait()  # while nothing runs
        running.begin(cast(Any, run))
        async with asyncio.timeout(60):
            assert await interrupted == (run, Interrupt.CANCELLED)
    finally:
        await service.stop()


async def test_jobs_handed_over_to_a_membership_that_has_lapsed_are_not_taken() -> None:
    events = EngineEvents()
    claims = Claims(10, Settler(EngineConfig(), events), events, lambda: 0.0)
    inbox = MemberInbox(claims)
    inbox.put([lease(1)])
    inbox.close()
    inbox.put([lease(2)])

    assert [one.seq for one in claims.waiting()] == [1]


async def test_cancel_of_before_a_claim_is_not_believed() -> None:
    """A failover may have taken it back; a job that is not started for it would be held for
    ever."""
    events = EngineEvents()
    claims = Claims(10, Settler(EngineConfig(), events), events, lambda: 0.0)
    claims.dropped = {1, 2}
    claims.put([lease(3)])
    assert not events.doubted.is_set()
    claims.put([lease(1)])
    assert claims.dropped == {2}

    looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def cancelled() -> list[int]:
        if not looked.done():
            looked.set_result(None)
        return [1, 2]

    parts: dict[str, Any] = {
        "events": events,
        "queue": SimpleNamespace(listen=lambda topic: Bell()),
        "membership": SimpleNamespace(member=SimpleNamespace(cancelled=cancelled)),
        "watchdog": None,
    }
    running = Running(EngineEvents())
    service = CancelListener(poll_seconds=3600, claims=claims, running=running, **parts)
    service.start()
    try:
        async with asyncio.timeout(60):
            await looked  # it may have been cancelled since the claim
        assert claims.dropped == {1, 2}
    finally:
        await service.stop()
