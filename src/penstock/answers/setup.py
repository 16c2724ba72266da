"""Builds the answers service of an app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.adapters.models.chat import open_models
from penstock.adapters.sql.store import Store
from penstock.answers import web_sources as web
from penstock.answers.completion import AnswerEnding
from penstock.answers.deps import AnswerDeps
from penstock.answers.jobs import Enqueue
from penstock.answers.local_librarian import LocalLibrarian
from penstock.answers.phases import Phases
from penstock.answers.service import Answers
from penstock.config import Config
from penstock.documents.service import Documents
from penstock.engine.waiters import LogWaiters
from penstock.errors.extras import needing
from penstock.model.answer import Phase
from penstock.ports.librarian import Librarian
from penstock.ports.queue import JobQueue
from penstock.research.service import Research


def local_librarian(queue: JobQueue, documents: Documents, config: Config) -> LocalLibrarian:
    """Build the librarian of this process, even if answers use a remote one."""
    model = open_models(config.llm, documents.mask).get(Phase.SEARCH)
    return LocalLibrarian(documents, model, queue.now, config.answers.evidence_tokens)


def _librarian(queue: JobQueue, documents: Documents, config: Config) -> Librarian:
    if config.librarian.address is None:
        return local_librarian(queue, documents, config)
    with needing("librarian.address needs", "grpc"):
        from penstock.librarian.client import RemoteLibrarian  # here: most apps have none
    return RemoteLibrarian(config.librarian, queue.now)


def build_answers(
    queue: JobQueue,
    store: Store,
    documents: Documents,
    research: Research,
    config: Config,
    job: Callable[..., Callable[[Any], Any]],
    enqueue: Enqueue,
    logs: LogWaiters,
) -> Answers:
    """Build the answers of an app and register the jobs that serve them."""
    settings = config.answers
    models = open_models(config.llm, documents.mask)
    tokens = settings.evidence_tokens
    tools = AnswerDeps(
        queue=queue,
        store=store.answers(),
        documents=documents,
        research=research,
        enqueue=enqueue,
        librarian=_librarian(queue, documents, config),
        unaided=LocalLibrarian(documents, None, queue.now, tokens),
        models=models,
        loop_seconds=settings.search_loop_seconds,
        evidence_tokens=tokens,
    )
    phases = Phases(tools)
    phases.register(job)
    AnswerEnding(tools, phases).register(job)
    web.register(tools, job)
    return Answers(tools, logs, settings.answer_seconds)
