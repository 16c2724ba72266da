"""Leases a new job to an idle worker in the transaction that stores it.

A worker of this process that found too little to do leaves word of what it would take. The writing
thread then leases new jobs to it in the transaction that stores them: one commit and one
hand-over between threads, where a wake-up and a claim of its own would take two of each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from penstock.ports.queue import Inbox, Lease, Topic

if TYPE_CHECKING:
    from penstock.adapters.sqlite.transaction import Transaction

log = logging.getLogger("penstock.sqlite")


class WaitingClaim(NamedTuple):
    """A claim that waits: used at most once, and dropped at the next exchange of its member. Kept
    and used by the writing thread alone."""

    claim: Callable[[Transaction], list[Lease]]
    inbox: Inbox
    loop: asyncio.AbstractEventLoop

    def give(self, leases: list[Lease]) -> None:
        try:
            self.loop.call_soon_threadsafe(self.inbox.put, leases)
        except RuntimeError:
            # As if the process had died here: its leases end with its membership.
            log.debug("the event loop closed before jobs handed over arrived")


def hand_over(tx: Transaction) -> list[tuple[WaitingClaim, list[Lease]]]:
    """Lease new jobs to those who stand waiting; wake everybody if there are more."""
    handed = []
    for member, standing in list(tx.standing.items()):
        if leases := standing.claim(tx):
            del tx.standing[member]
            handed.append((standing, leases))
    taken = {lease.id for _, leases in handed for lease in leases}
    if not taken.issuperset(tx.new):
        tx.wake(Topic.READY)
    return handed
