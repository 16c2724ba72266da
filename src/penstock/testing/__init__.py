"""Simulates an app: its handlers under a virtual clock, with faults that a seed decides."""

from penstock.testing.faults import FaultKind, InjectedFault
from penstock.testing.simulation import SimulationFailed, SimulationReport, crash, simulate

__all__ = [
    "FaultKind",
    "InjectedFault",
    "SimulationFailed",
    "SimulationReport",
    "crash",
    "simulate",
]
