"""`penstock intake`: reads requests from message brokers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.errors import UsageError
from penstock.cli.options import AppArgument, ConfigOption, JsonOption, QueueOption, new_group
from penstock.cli.output import note, print_event
from penstock.cli.telemetry import LogFormatOption, telemetry
from penstock.cli.text import plural, printable
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.cli.stopping import Signals
    from penstock.intake.kafka import TopicReader
    from penstock.model.intake import KafkaConfig

group = new_group("Read requests from message brokers.")


@group.command("kafka")
def take_in_kafka(
    target: AppArgument = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Stop after the messages that are there now.")
    ] = False,
    redrive: Annotated[
        bool,
        typer.Option("--redrive", help="Republish dead letters to their topics, and exit."),
    ] = False,
    queue: QueueOption = None,
    config: ConfigOption = None,
    log_format: LogFormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read documents, searches and jobs from Kafka and enqueue them.

    Configured in the section intake.kafka of the settings. A message is committed once its request
    is stored; messages that cannot be processed go to the dead-letter topic with the reason. Run up
    to one process per partition.

    Stops on SIGTERM or Ctrl-C: messages being stored are finished, the others are left for the
    next reader. A second signal stops at once.
    """
    import asyncio

    from penstock.app import Penstock
    from penstock.cli.worker import load_for_work

    need_kafka("Kafka intake")
    if drain and redrive:
        raise UsageError("--redrive ends by itself; leave out --drain")
    # Without a module only what is accepted is asked for, which may need no store.
    given = target is None
    app = Penstock(queue, config_file=config) if given else load_for_work(target, queue, config)
    with telemetry("penstock-intake", app.config.logging, log_format):
        running = (
            _redrive(app, as_json=as_json) if redrive else _take_in(app, drain, as_json=as_json)
        )
        code = asyncio.run(running)
    raise typer.Exit(code)


def need_kafka(what: str) -> None:
    """ConfigError unless the extra is installed."""
    try:
        import penstock.intake.run  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("penstock"):
            raise
        raise ConfigError(f"{what} needs: pip install 'penstock[kafka]'") from None


async def _take_in(app: Penstock, drain: bool, *, as_json: bool) -> int:
    """Read until told to stop or drained; the exit code."""
    import asyncio

    from penstock.cli.stopping import Signals
    from penstock.intake.run import KafkaIntake

    signals = Signals()
    intake = KafkaIntake(app, app.config.intake.kafka)
    async with app:
        _announce(app, as_json=as_json)
        minding = asyncio.create_task(_mind(signals, intake.reader, as_json=as_json))
        try:
            await intake.run(signals.stop, drain=drain)
        finally:
            minding.cancel()
            await asyncio.gather(minding, return_exceptions=True)
    tally = intake.tally
    said = (
        f"{plural(tally.stored, 'message')} stored, {tally.duplicates} had been before, "
        f"{plural(tally.dead_letters, 'dead letter')}"
    )
    return signals.stopped(as_json=as_json, said=said, **tally.as_dict())


async def _redrive(app: Penstock, *, as_json: bool) -> int:
    from penstock.cli.stopping import Signals
    from penstock.intake.run import redrive_all

    signals = Signals()
    done = await redrive_all(app.config.intake.kafka, signals.stop)
    said = f"{plural(done.redriven, 'dead letter')} published again, {done.skipped} left"
    return signals.stopped(as_json=as_json, said=said, **done.as_dict())


async def _mind(signals: Signals, reader: TopicReader, *, as_json: bool) -> None:
    """What signals mean, said and done."""
    await signals.stop.wait()
    if as_json:
        print_event("stopping")
    else:
        note("stopping: finishing messages being stored; signal again to stop at once")
    await signals.hasten.wait()
    await reader.hasten()


def _announce(app: Penstock, *, as_json: bool) -> None:
    from penstock.config import hide_secrets

    config: KafkaConfig = app.config.intake.kafka
    url = hide_secrets(app.config.queue)
    if as_json:
        print_event(
            "started",
            bootstrap=config.bootstrap,
            topics=list(config.topics),
            group=config.group,
            queue=url,
            pid=os.getpid(),
        )
    else:
        note(
            f"penstock intake {os.getpid()} reads {', '.join(config.topics)} of "
            f"{printable(config.bootstrap)} as {printable(config.group)}, on {printable(url)}; "
            "Ctrl-C stops it"
        )
