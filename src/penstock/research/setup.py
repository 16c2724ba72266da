"""Builds the research service of an app."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.config import Config
from penstock.documents.jobs import Enqueue
from penstock.documents.service import Documents
from penstock.lanes.registry import LaneRegistry
from penstock.ports.queue import JobQueue
from penstock.ports.store import Store
from penstock.research import jobs
from penstock.research import search_run as course
from penstock.research.job_ids import SEARCH_LANE
from penstock.research.jobs import ResearchDeps
from penstock.research.providers import open_providers
from penstock.research.robots import Robots
from penstock.research.service import Research


def build_research(
    queue: JobQueue,
    store: Store,
    documents: Documents,
    config: Config,
    lanes: LaneRegistry,
    job: Callable[..., Callable[[Any], Any]],
    enqueue: Enqueue,
) -> Research:
    """Build the research service of an app and register its jobs."""
    settings = config.research
    providers = open_providers(
        config.providers,
        browser=config.browser,
        fetch_allow=config.outbound.fetch_allow,
        documents=documents,
    )
    tools = ResearchDeps(
        queue=queue,
        store=store.research(),
        documents=documents,
        providers=providers,
        robots=Robots(lanes),
        provider_seconds=settings.provider_seconds,
        page_seconds=settings.page_seconds,
        page_fresh_seconds=settings.page_fresh_seconds,
    )
    jobs.register(tools, job)
    course.register(tools, settings.search_seconds, job)
    return Research(
        tools,
        enqueue,
        settings.search_providers or tuple(providers),
        lanes.config(SEARCH_LANE).parallel,
    )
