"""`penstock intake`: reads requests from message brokers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from penstock.cli.errors import UsageError
from penstock.cli.options import AppArgument, flag, new_group
from penstock.cli.session import Session
from penstock.cli.telemetry import LogFormatOption, telemetry
from penstock.cli.text import plural, printable

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.cli.stopping import Signals
    from penstock.intake.kafka import TopicReader
    from penstock.model.intake import KafkaConfig

group = new_group("Read requests from message brokers.")


@group.command("kafka")
def take_in_kafka(
    *,
    target: AppArgument = None,
    drain: bool = flag("--drain", "Stop after the messages that are there now."),
    redrive: bool = flag("--redrive", "Republish dead letters to their topics, and exit."),
    log_format: LogFormatOption = None,
    session: Session,
) -> None:
    """Read documents, searches and jobs from Kafka and enqueue them.

    Configured in the section intake.kafka of the settings. A message is committed once its request
    is stored; messages that cannot be processed go to the dead-letter topic with the reason. Run up
    to one process per partition.

    Stops on SIGTERM or Ctrl-C: messages being stored are finished, the others are left for the
    next reader. A second signal stops at once.
    """
    import asyncio

    from penstock.cli.load_app import load_for_work, need_extra

    need_extra("Kafka intake", "kafka", "penstock.intake.run")
    if drain and redrive:
        raise UsageError("--redrive ends by itself; leave out --drain")
    # Without a module only what is accepted is asked for, which may need no store.
    alone = target is None
    app = session.app() if alone else load_for_work(target, session.queue, session.config)
    with telemetry("penstock-intake", app.config.logging, log_format):
        running = _redrive(app, session) if redrive else _take_in(app, session, drain=drain)
        code = asyncio.run(running)
    raise typer.Exit(code)


async def _take_in(app: Penstock, session: Session, *, drain: bool) -> int:
    """Read until told to stop or drained; returns the exit code."""
    import asyncio

    from penstock.cli.stopping import Signals
    from penstock.intake.run import KafkaIntake

    signals = Signals()
    intake = KafkaIntake(app, app.config.intake.kafka)
    async with app:
        _announce(app, session)
        minding = asyncio.create_task(_mind(signals, intake.reader, session))
        try:
            await intake.run(signals.stop, drain=drain)
        finally:
            minding.cancel()
            await asyncio.gather(minding, return_exceptions=True)
    tally = intake.tally
    text = (
        f"stopped: {plural(tally.stored, 'message')} stored, {tally.duplicates} had been before, "
        f"{plural(tally.dead_letters, 'dead letter')}"
    )
    return signals.stopped(session, text, **tally.as_dict())


async def _redrive(app: Penstock, session: Session) -> int:
    from penstock.cli.stopping import Signals
    from penstock.intake.run import redrive_all

    signals = Signals()
    done = await redrive_all(app.config.intake.kafka, signals.stop)
    published = f"{plural(done.redriven, 'dead letter')} published again"
    return signals.stopped(session, f"stopped: {published}, {done.skipped} left", **done.as_dict())


async def _mind(signals: Signals, reader: TopicReader, session: Session) -> None:
    """Handle signals, and report them."""
    await signals.stop.wait()
    waits = "finishing messages being stored; signal again to stop at once"
    session.tell("stopping", f"stopping: {waits}")
    await signals.hasten.wait()
    await reader.hasten()


def _announce(app: Penstock, session: Session) -> None:
    from penstock.config import hide_secrets

    config: KafkaConfig = app.config.intake.kafka
    url = hide_secrets(app.config.queue)
    session.tell(
        "started",
        f"penstock intake {os.getpid()} reads {', '.join(config.topics)} of "
        f"{printable(config.bootstrap)} as {printable(config.group)}, on {printable(url)}; "
        "Ctrl-C stops it",
        bootstrap=config.bootstrap,
        topics=list(config.topics),
        group=config.group,
        queue=url,
        pid=os.getpid(),
    )
