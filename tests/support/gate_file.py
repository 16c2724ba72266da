"""A gate that a test opens for handlers, here or in other processes: a file."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

PAUSE = 0.01


def is_open(gate: str) -> bool:
    return Path(gate).exists()


async def pass_gate(gate: str) -> None:
    """Wait until the gate is open, interruptibly."""
    while not is_open(gate):  # noqa: ASYNC110 (there is no event across processes)
        await asyncio.sleep(PAUSE)


def pass_gate_in_thread(gate: str) -> None:
    """The same in a thread, which nobody can interrupt."""
    while not is_open(gate):
        time.sleep(PAUSE)
