"""A test that never ends: it starts a server of each kind and a worker process, says which, and
waits to be ended together with its run. The file's name keeps it out of every other run."""

import asyncio
import json
import os
from pathlib import Path

from tests.support.database_servers import PostgresServer, RedisServer
from tests.support.worker_processes import Farm


async def test_lingers(tmp_path: Path) -> None:
    servers = [
        PostgresServer().start(),
        RedisServer("redis").start(),
        RedisServer("valkey").start(),
    ]
    worker = await Farm(tmp_path).start()
    servers[0].freeze()  # what stands still is to go as well
    told = {
        "folders": [str(server.folder) for server in servers],
        "processes": [worker.pid, *(server.pid for server in servers)],
    }
    report = Path(os.environ["LINGERING_REPORT"])
    report.with_suffix(".new").write_text(json.dumps(told))
    report.with_suffix(".new").rename(report)
    await asyncio.Event().wait()
