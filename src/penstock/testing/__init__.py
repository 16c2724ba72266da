"""Tests of apps: a queue of its own for each test, a virtual clock, faults by name, and simulations
that a seed decides."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.assertions import assert_enqueued, inline, refute_enqueued
    from penstock.testing.faults import FaultKind, InjectedFault
    from penstock.testing.provider import SimulatedProvider
    from penstock.testing.simulation import SimulationFailed, SimulationReport, crash, simulate
    from penstock.testing.under_test import OwnQueue, own_queue
    from penstock.testing.virtual_clock import VirtualClock
    from penstock.testing.worker import SimulatedWorker
else:
    _MODULES = {
        "assertions": ("assert_enqueued", "inline", "refute_enqueued"),
        "faults": ("FaultKind", "InjectedFault"),
        "under_test": ("OwnQueue", "own_queue"),
        "provider": ("SimulatedProvider",),
        "simulation": ("SimulationFailed", "SimulationReport", "crash", "simulate"),
        "virtual_clock": ("VirtualClock",),
        "worker": ("SimulatedWorker",),
    }
    _PLACES = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        """Each is loaded when it is first asked for: most tests need few of them."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_PLACES[name]}")
        globals()[name] = found = getattr(module, name)
        return found


__all__ = [
    "FaultKind",
    "InjectedFault",
    "OwnQueue",
    "SimulatedProvider",
    "SimulatedWorker",
    "SimulationFailed",
    "SimulationReport",
    "VirtualClock",
    "assert_enqueued",
    "crash",
    "inline",
    "own_queue",
    "refute_enqueued",
    "simulate",
]
