"""The recorder of steps of a process: loaded and made with the first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue

if TYPE_CHECKING:
    from penstock.engine.step_recorder import StepRecorder
    from penstock.engine.step_results import StepResults


class Recording:
    """Makes the recorder. `results` says where results are kept that are too large for the queue;
    None: nowhere."""

    def __init__(
        self, queue: JobQueue, settings: EngineConfig, results: Callable[[], StepResults | None]
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._results = results
        self._recorder: StepRecorder | None = None

    @property
    def recorder(self) -> StepRecorder:
        if self._recorder is None:
            from penstock.engine.step_recorder import StepRecorder

            self._recorder = StepRecorder(self._queue, self._settings, self._results)
        return self._recorder

    async def close(self) -> None:
        if self._recorder is not None:
            await self._recorder.close()
