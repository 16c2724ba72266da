"""Durable jobs, shared rate limits and cited answers for RAG and research systems."""

import importlib
import typing

from penstock.errors import JobFailed, PenstockError, PermanentError, RunLater
from penstock.model.job import Job, JobState, Priority
from penstock.model.lane import LaneConfig
from penstock.ports.queue import JobFilter
from penstock.text.user_agent import VERSION as _VERSION

if typing.TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.engine.context import JobContext
    from penstock.engine.orchestrator import JobOrchestrator
else:
    _ENGINE = {
        "JobContext": "penstock.engine.context",
        "JobOrchestrator": "penstock.engine.orchestrator",
        "Penstock": "penstock.app",
    }

    def __getattr__(name: str) -> typing.Any:
        """The engine is loaded when it is first asked for: most commands start without it."""
        if name not in _ENGINE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(importlib.import_module(_ENGINE[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *_ENGINE})


__version__ = _VERSION

__all__ = [
    "Job",
    "JobContext",
    "JobFailed",
    "JobFilter",
    "JobOrchestrator",
    "JobState",
    "LaneConfig",
    "Penstock",
    "PenstockError",
    "PermanentError",
    "Priority",
    "RunLater",
    "__version__",
]
