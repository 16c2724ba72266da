"""The program of a contender's enqueuing side, for contenders that need a process of their own.

It reads a call per line, `{"call": "send", "arguments": {...}}`, and answers each with a line,
`{"value": ...}` or `{"error": "..."}`. What is timed is timed in here. It ends with its input.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import Session
from benchmarks.contenders.send import fill_seconds, latencies

PATIENCE = 120.0
"""Seconds for one call: a job that is never done must not stop the run."""
MEASURES: dict[str, Callable[..., Awaitable[Any]]] = {
    "latencies": latencies,
    "fill_seconds": fill_seconds,
}


async def main(module: str, folder: Path, settings: dict[str, Any]) -> None:
    connect = importlib.import_module(module).connect
    async with connect(folder, settings) as session:
        print(json.dumps({"value": "ready"}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await _answer(session, **json.loads(line))), flush=True)


async def _answer(session: Session, call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(PATIENCE):
            if measure := MEASURES.get(call):
                return {"value": await measure(session, **arguments)}
            return {"value": await getattr(session, call)(**arguments)}
    except Exception:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])))
