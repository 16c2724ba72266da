"""Handlers of research jobs: `research.find` queries one provider, `research.page` reads one page.
`research.search`, which enqueues them, is in `search_run`.

What goes wrong with one is noted and is not the end of the search. Something that is the provider's
or the page's own doing is noted at once; what may pass is tried again by the engine, and noted when
it is not tried any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.adapters.sql.tasks import TaskStore
from penstock.documents.service import REASON_LIMIT, Documents
from penstock.engine.context import JobContext
from penstock.errors import Blocked, ConfigError, PermanentError
from penstock.model.document import DocumentState
from penstock.model.finding import Finding
from penstock.model.research import PageState, ProviderReply, SearchRef
from penstock.ports.provider import SearchProvider
from penstock.ports.queue import JobQueue
from penstock.research.job_ids import FIND, PAGE
from penstock.research.page import PAGES, TIMEOUT_SECONDS, fetch_page
from penstock.research.providers import Providers
from penstock.research.robots import Robots

ABSTRACT_LIMIT = 5000
RECORD_LIMIT = 1000
"""Maximum characters of an abstract in a job's result."""


@dataclass(slots=True, frozen=True)
class ResearchDeps:
    """Dependencies of the research jobs."""

    queue: JobQueue
    store: TaskStore
    documents: Documents
    providers: Providers
    robots: Robots
    provider_seconds: float
    page_seconds: float
    page_fresh_seconds: float

    def now(self) -> float:
        return self.queue.now()

    def provider(self, name: str) -> SearchProvider:
        if name not in self.providers:
            there = ", ".join(self.providers)
            raise ConfigError(f"there is no provider {name!r} here; there are: {there}")
        return self.providers[name]

    async def reason(self, error: BaseException) -> str:
        """Format an error for people."""
        return await self.documents.masked_reason(error)


def register(tools: ResearchDeps, job: Callable[..., Callable[[Any], Any]]) -> None:
    @job(FIND, lane=lambda payload: tools.provider(payload["provider"]).lane)
    async def find(
        ctx: JobContext, task: str, search: str, run: int, provider: str
    ) -> dict[str, Any]:
        ref = SearchRef(ctx.job.tenant, task, search)
        return await _find(tools, ctx, ref, run, provider)

    @job(PAGE, lane=lambda payload: payload["lane"], timeout=TIMEOUT_SECONDS)
    async def page(
        ctx: JobContext, task: str, search: str, run: int, key: str, url: str, lane: str
    ) -> dict[str, Any]:
        ref = SearchRef(ctx.job.tenant, task, search)
        return await _page(tools, ctx, ref, run, key, url)


async def _find(
    tools: ResearchDeps, ctx: JobContext, ref: SearchRef, run: int, name: str
) -> dict[str, Any]:
    started = await tools.store.start(ref, run, tools.now())
    if started is None:
        return {"refused": True}
    search, provider = started.search, tools.provider(name)
    answers = (one for one in started.answers if one.provider == name)
    answer = next(answers, ProviderReply(ref.id, name, (), done=False))
    answer = replace(answer, error=None)
    try:
        if not answer.done:
            wanted = search.limit - len(answer.findings)
            pages = provider.search(ctx, search.query, wanted, answer.next)
            async with aclosing(pages):
                async for page in pages:
                    answer = replace(
                        answer,
                        findings=answer.findings + tuple(await _masked(tools, page.findings)),
                        skipped=answer.skipped + page.skipped,
                        next=page.next,
                        at=tools.now(),
                    )
                    # Before the next request: if its permit is long in coming, the job is
                    # released, and goes on from here.
                    if page.next is not None and len(answer.findings) < search.limit:
                        await tools.store.answer(ref, run, answer)
    except Blocked as error:
        # Its lane is paused for all; this search goes on without it instead of waiting for that.
        noted = replace(answer, error=await tools.reason(error), at=tools.now())
        await tools.store.answer(ref, run, noted)
        return {"provider": name, "query": search.query, "blocked": noted.error}
    except Exception as error:
        if isinstance(error, PermanentError) or ctx.last_attempt:
            noted = replace(answer, error=await tools.reason(error), at=tools.now())
            await tools.store.answer(ref, run, noted)
        raise
    kept = await tools.store.answer(ref, run, replace(answer, done=True, next=None))
    if not kept:
        return {"refused": True}
    return {
        "provider": name,
        "query": search.query,
        "findings": [_in_full(one) for one in answer.findings],
        "skipped": answer.skipped,
    }


async def _masked(tools: ResearchDeps, findings: Sequence[Finding]) -> list[Finding]:
    """Mask personal data in what is said about findings. URLs and authors' names stay: without them
    nobody could find the work."""
    texts = [
        text for one in findings for text in (one.title, (one.abstract or "")[:ABSTRACT_LIMIT])
    ]
    masked = iter(await tools.documents.mask(texts))
    return [replace(one, title=next(masked), abstract=next(masked) or None) for one in findings]


def _in_full(finding: Finding) -> dict[str, Any]:
    """Format findings for the job's result, within its limit."""
    return asdict(replace(finding, abstract=(finding.abstract or "")[:RECORD_LIMIT] or None))


async def _page(
    tools: ResearchDeps, ctx: JobContext, ref: SearchRef, run: int, key: str, url: str
) -> dict[str, Any]:
    """Read a page, even if its search is over: a failed one may be redriven."""

    async def note(state: PageState, **known: Any) -> bool:
        return await tools.store.page(ref, run, key, state, tools.now(), **known)

    try:
        document = await fetch_page(
            ctx,
            tools.documents,
            url,
            tenant=ref.tenant,
            collection=PAGES,
            fresh_seconds=tools.page_fresh_seconds,
            robots=tools.robots,
        )
        async with ctx.parked():
            document = await tools.documents.wait(
                document.id, collection=document.collection, tenant=ref.tenant
            )
    except PermanentError as error:  # the page's own doing: no job of ours has failed
        reason = await tools.reason(error)
        await note(PageState.FAILED, reason=reason)
        return {"url": url, "failed": reason}
    except Exception as error:
        if ctx.last_attempt:
            await note(PageState.FAILED, reason=await tools.reason(error))
        raise
    if document.state is DocumentState.FAILED:
        said = (document.error or {}).get("message") or document.message
        await note(PageState.FAILED, reason=str(said)[:REASON_LIMIT])
        return {"url": url, "failed": said}
    where = document.ref
    kept = await note(
        PageState.READ, collection=where.collection, document=where.id, title=document.title
    )
    return {"url": url, "collection": where.collection, "document": where.id, "kept": kept}
