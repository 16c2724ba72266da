"""Creates the queue that a URL names."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.adapters.queue import QueueOptions
from penstock.errors import ConfigError
from penstock.lanes.registry import LaneRegistry
from penstock.model.settings import EngineConfig
from penstock.ports.queue import JobQueue


def choose_queue(
    url: str, settings: EngineConfig, lanes: LaneRegistry, weights: Mapping[str, float]
) -> JobQueue:
    """The queue that `url` names. ConfigError where there is no such kind."""
    common = QueueOptions(
        ageing_seconds=settings.ageing_seconds,
        retention_seconds=settings.retention_seconds,
        usage_retention_seconds=settings.usage_retention_seconds,
        lane_config=lanes.config,
        weights=weights,
    )
    match url.split(":", 1)[0]:
        case "sqlite":
            from penstock.adapters.sqlite import SqliteQueue

            return SqliteQueue(url, durable=settings.durable, **common)
        case "postgresql" | "postgres":
            from penstock.errors.extras import needing

            with needing("PostgreSQL queues need", "postgres"):
                from penstock.adapters.postgres import PostgresQueue
            return PostgresQueue(url, poll_only=settings.poll_only, **common)
        case "redis" | "rediss" | "unix" | "valkey":
            from penstock.errors.extras import needing

            with needing("Redis queues need", "redis"):
                from penstock.adapters.redis import RedisQueue
            trust = {"allow_volatile": settings.allow_volatile, "wait_aof": settings.wait_aof}
            return RedisQueue(url, **trust, **common)
        case scheme:
            raise ConfigError(
                f"no queue for {scheme!r} URLs; write sqlite:///jobs.db, "
                "postgresql://user@host/database or redis://localhost:6379/0"
            )
