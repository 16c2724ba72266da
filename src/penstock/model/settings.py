"""Settings of the engine. Those of services are in `service_settings`. All times are in seconds;
tests scale them down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.errors import ConfigError
from penstock.model.section import check_fields, setting

DEFAULT_FILE = "penstock.yaml"
DEFAULT_QUEUE = "sqlite:///penstock.db"
_CONTACT = re.compile(r"[!-'*-~]*")


@dataclass(slots=True, frozen=True)
class OutboundConfig:
    """Outbound HTTP requests."""

    fetch_allow: tuple[str, ...] = setting((), example="[intranet.example:8080]")
    """Allow-list of servers on private addresses, as `host:port`. By default only public addresses
    are fetched."""
    contact: str = ""
    """Email address or URL of the operator, sent to web servers in the user agent: `Penstock/0.1.0
    (+mail@example.org)`."""
    trace_hosts: tuple[str, ...] = setting((), example="[embedder.internal]")
    """Hosts that receive the trace context (`traceparent` header): your own instrumented services.
    It is never sent to URLs that come from users or documents."""

    def __post_init__(self) -> None:
        if not _CONTACT.fullmatch(self.contact):
            raise ConfigError(
                "contact must be a mail or web address, in ASCII and without blanks",
                setting="contact",
            )


@dataclass(slots=True, frozen=True)
class LoggingConfig:
    """Logging, and which values are hidden from people."""

    log_format: Literal["text", "json"] = "text"
    """Log format of `serve`, `worker`, `mcp`, `librarian` and `intake`: `text`, or `json` with one
    object per line."""
    log_errors: Literal["message", "type"] = "message"
    """What is logged when one of your jobs fails: `message` (type, message, location and causes),
    or `type` (the same without messages, which may quote a payload)."""
    hidden_names: tuple[str, ...] = setting((), example="[iban, birth_date]")
    """More field names whose values are hidden in logs, on the dashboard and in command output, in
    addition to `password`, `secret`, `token`, `api_key`, `authorization`, `cookie` and similar
    names."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(slots=True, frozen=True)
class EngineConfig:
    """Job storage and execution."""

    max_workers: int = setting(10, least=1)
    """Maximum concurrent jobs per process."""
    reserved_workers: int = 0
    """Workers reserved for high-priority jobs. Jobs of lower priority are then not prefetched."""
    internal_queue: int = setting(100, least=1)
    """Maximum number of jobs prefetched by one process."""
    prefetch_seconds: float = 5.0
    """A prefetched job that has not started within this time is returned to the queue."""
    lease_seconds: float = setting(15.0, least=0.1)
    """Lease duration. Jobs of a process that stops renewing its lease are taken over after this
    time."""
    job_timeout: float = setting(60.0, least=0.001)
    """Timeout of one run, unless the handler sets its own."""
    max_retries: int = 3
    """Maximum retries, unless the handler sets its own."""
    retry_base_seconds: float = 1.0
    """Base of the exponential back-off: the n-th retry waits a random time between 0 and min(cap,
    base * 2**(n-1))."""
    retry_cap_seconds: float = 300.0
    """Maximum delay before a retry: the cap in the formula above."""
    # Pauses of nothing would be hot loops.
    reconnect_first_seconds: float = setting(0.1, least=0.001)
    """Delay before the first reconnect when the queue is unreachable; it doubles with each
    attempt."""
    reconnect_cap_seconds: float = setting(2.0, least=0.001)
    """Maximum delay between reconnects."""
    upkeep_seconds: float = setting(0.5, least=0.01)
    """Interval of maintenance: detecting dead processes, overdue jobs, cancelled children."""
    poll_seconds: float = setting(1.0, least=0.01)
    """Polling interval, in case a notification was lost."""
    progress_seconds: float = 0.25
    """Minimum interval between two writes of progress."""
    grace_seconds: float = 25.0
    """Grace period for running jobs on shutdown."""
    ageing_seconds: float = setting(300.0, least=0.01)
    """A queued job is promoted by one priority level each time it has waited this long."""
    retention_seconds: float = 7 * 86400.0
    """Retention of completed and cancelled jobs. Dead letters are kept until discarded."""
    usage_retention_seconds: float = 90 * 86400.0
    """Retention of what single requests have used, by task and job; on Redis the newest 100,000 at
    most. The sums of each day are kept for good."""
    max_steps: int = setting(10_000, least=1)
    """Maximum number of recorded steps per job."""
    max_steps_bytes: int = setting(64 * 1024 * 1024, least=1)
    """Maximum total size of the step results of one job. A single result may take 1 MiB."""
    durable: bool = True
    """SQLite: sync every commit to disk, so that it survives a power loss."""
    wait_aof: bool = False
    """Redis 7.2 or newer, Valkey: an enqueue waits until the job is in the append-only file, so
    that a crash of the server does not lose it while the disk is slow."""
    allow_volatile: bool = False
    """Redis: accept a server that may lose jobs because it has no append-only file or evicts
    keys."""
    poll_only: bool = False
    """PostgreSQL: avoid session features (LISTEN, prepared statements), for poolers in transaction
    mode. Changes made by other processes are then noticed by polling."""
    outbound: OutboundConfig = setting(OutboundConfig, read=False)
    logging: LoggingConfig = setting(LoggingConfig, read=False)
    prices: Mapping[str, Any] = setting(dict, read=False)
    budgets: Mapping[str, Any] = setting(dict, read=False)
    """Sections of their own, which the engine needs as well."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.reserved_workers >= self.max_workers:
            raise ConfigError(
                "reserved_workers must be fewer than max_workers", setting="reserved_workers"
            )
        if self.max_workers > 1000:
            raise ConfigError(
                "max_workers must be at most 1000; start more processes instead",
                setting="max_workers",
            )
