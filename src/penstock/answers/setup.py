"""Putting the answers of an app together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.adapters.chat import open_models
from penstock.answers import web
from penstock.answers.ending import Ending
from penstock.answers.jobs import Enqueue
from penstock.answers.librarian import LocalLibrarian
from penstock.answers.phases import Phases
from penstock.answers.service import Answers
from penstock.answers.tools import Tools
from penstock.config import Config
from penstock.engine.waiters import LogWaiters
from penstock.ingest.library import Library
from penstock.model.answer import Phase
from penstock.ports.queue import JobQueue
from penstock.ports.store import Store
from penstock.research.service import Research


def open_answers(
    queue: JobQueue,
    store: Store,
    library: Library,
    research: Research,
    config: Config,
    job: Callable[..., Callable[[Any], Any]],
    enqueue: Enqueue,
    logs: LogWaiters,
) -> Answers:
    """The answers of an app; registers the jobs that serve them."""
    settings = config.settings
    models = open_models(config.llm)
    tokens = settings.evidence_tokens
    tools = Tools(
        queue=queue,
        store=store.answers(),
        library=library,
        research=research,
        enqueue=enqueue,
        librarian=LocalLibrarian(library, models.get(Phase.SEARCH), queue.now, tokens),
        unaided=LocalLibrarian(library, None, queue.now, tokens),
        models=models,
        loop_seconds=settings.search_loop_seconds,
        evidence_tokens=tokens,
    )
    phases = Phases(tools)
    phases.register(job)
    Ending(tools, phases).register(job)
    web.register(tools, job)
    return Answers(tools, logs, settings.answer_seconds)
