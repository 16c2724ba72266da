"""Telemetry of a process: logs, and traces where they are enabled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import ConfigError

if TYPE_CHECKING:
    import logging

    from penstock.model.settings import LoggingConfig

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
FLUSH_SECONDS = 2.0
"""How long a shutdown waits for a collector to accept the last spans."""

LogFormatOption = Annotated[
    str | None, typer.Option("--log-format", metavar="text|json", help="Log format.")
]

VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Log more, including tracebacks of failed jobs.")
]


@contextmanager
def telemetry(
    service: str, settings: LoggingConfig, log_format: str | None = None, *, verbose: bool = False
) -> Iterator[None]:
    """Log inside the block, and trace if OTEL_EXPORTER_OTLP_ENDPOINT is set. `log_format` takes
    precedence over the setting."""
    import logging
    from dataclasses import replace

    if log_format is not None:
        settings = replace(settings, log_format=log_format)  # type: ignore[arg-type]  # which checks it
    _set_up_logs(settings, logging.INFO)
    if verbose:
        logging.getLogger("penstock").setLevel(logging.DEBUG)
    flush = _set_up_traces(service)
    try:
        yield
    finally:
        if flush is not None:
            flush()


@contextmanager
def at_work(command: str, settings: LoggingConfig) -> Iterator[None]:
    """Reduce logging for a command that shows progress itself: the log would repeat it, by job."""
    import logging

    logging.getLogger("penstock").setLevel(logging.ERROR)
    _set_up_logs(settings, logging.WARNING)
    with traced(command):
        yield


@contextmanager
def traced(command: str) -> Iterator[None]:
    """Trace a command, if tracing is enabled; as a child of the span in the environment variable
    TRACEPARENT."""
    flush = _set_up_traces("penstock")
    if flush is None:
        yield
        return
    from penstock.telemetry import tracing

    caller = {tracing.HEADER: os.environ.get("TRACEPARENT", "")}
    try:
        with tracing.span(f"penstock {command}", caller=caller):
            yield
    finally:
        flush()


def _set_up_logs(settings: LoggingConfig, level: int) -> None:
    """Set up logging, unless the app's module has done so."""
    import logging

    from penstock.engine.log_fields import of_running_job
    from penstock.telemetry.logs import JsonFormatter, RepeatFilter, TextLines

    handler = logging.StreamHandler()
    json = settings.log_format == "json"
    handler.setFormatter(JsonFormatter(of_running_job) if json else TextLines())
    handler.addFilter(RepeatFilter("opentelemetry"))
    logging.basicConfig(level=level, handlers=[handler])


def _set_up_traces(service: str) -> Callable[[], None] | None:
    """Set up tracing; returns a function that sends the last spans, None if it is off."""
    import logging

    log = logging.getLogger("penstock")
    where = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if where is None or off or os.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "none":
        return None
    for name in PROTOCOLS:
        if os.environ.get(name, PROTOCOL) != PROTOCOL:
            raise ConfigError(f"{name} must be {PROTOCOL}: spans are sent over HTTP only")
    from penstock.telemetry import tracing

    if tracing.on():
        log.info("the app exports its own traces")
        return None
    return _export(service, where, log)


def _export(service: str, where: str, log: logging.Logger) -> Callable[[], None] | None:
    import threading

    from penstock.config import hide_secrets

    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("opentelemetry"):
            raise
        log.warning("traces are disabled: they need pip install 'penstock[otel]'")
        return None
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create({} if named else {"service.name": service})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    log.info("exporting traces to %s", hide_secrets(where))

    def flush() -> None:
        # In a thread: a collector that is away must not keep the process.
        last = threading.Thread(target=provider.shutdown, name="penstock-spans", daemon=True)
        last.start()
        last.join(FLUSH_SECONDS)
        if last.is_alive():
            log.warning("the last spans were not exported within %g s", FLUSH_SECONDS)

    return flush
