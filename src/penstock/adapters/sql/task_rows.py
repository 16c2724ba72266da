"""Research tasks as rows and the rules on them, shared by all SQL stores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, NamedTuple

from penstock import runtime
from penstock.adapters.sql.dialect import Row
from penstock.errors import ValidationError
from penstock.model.finding import Finding
from penstock.model.job import Priority
from penstock.model.research import (
    Added,
    Granted,
    NewPage,
    NewSearch,
    PageState,
    ProviderReply,
    ResearchTask,
    Search,
    SearchRef,
    SearchState,
    TaskPage,
)
from penstock.text.normalize import storable

_SEARCH = ("number", "query", "run", "queued_at", "started_at", "finished_at", "reason")
"""Columns that are stored as a search has them."""
_PAGE = [field.name for field in fields(TaskPage)]


def kept(value: Any) -> Any:
    """A value as it is stored: all that is text in it is text that every store takes."""
    match value:
        case str():
            return storable(value)
        case Mapping():
            return {kept(name): kept(one) for name, one in value.items()}
        case list() | tuple():
            return [kept(one) for one in value]
        case _:
            return value


def hash_of(key: str) -> str:
    """What a key is found by: it may be longer than an entry of an index."""
    return hashlib.sha256(storable(key).encode()).hexdigest()


def task_of(row: Row) -> ResearchTask:
    """The task in a row of `task_columns`."""
    return ResearchTask(*row)


def task_values(task: ResearchTask) -> dict[str, Any]:
    """A new task, by column, as `task_columns`."""
    left = task.seconds_left
    if left is None and task.ends_at is None:
        left = task.budget_seconds
    values: dict[str, Any] = kept(asdict(replace(task, seconds_left=left)))
    return values


def clock_started(task: ResearchTask, now: float) -> ResearchTask:
    if task.budget_seconds is None or task.ends_at is not None:
        return task
    left = task.budget_seconds if task.seconds_left is None else task.seconds_left
    return replace(task, ends_at=now + left, seconds_left=None)


def clock_stopped(task: ResearchTask, now: float) -> ResearchTask:
    if task.ends_at is None:
        return task
    return replace(task, ends_at=None, seconds_left=max(0.0, task.ends_at - now))


def search_of(row: Row) -> Search:
    """The search in a row of `search_columns`."""
    return Search(
        ref=SearchRef(row["tenant"], row["task"], row["id"]),
        **{name: row[name] for name in _SEARCH},
        limit=row["wanted"],
        priority=Priority(row["priority"]),
        providers=tuple(json.loads(row["providers"])),
        state=SearchState(row["state"]),
    )


def search_values(hash: str, search: Search) -> dict[str, Any]:  # noqa: A002
    """A new search, by column."""
    return {
        "tenant": search.ref.tenant,
        "task": search.ref.task,
        "id": search.ref.id,
        "number": search.number,
        "hash": hash,
        "query": search.query,
        "wanted": search.limit,
        "priority": int(search.priority),
        "providers": json.dumps(search.providers),
        "state": search.state.value,
        "run": search.run,
        "queued_at": search.queued_at,
    }


def by_task(
    tasks: Sequence[Row], searches: Sequence[Row]
) -> list[tuple[ResearchTask, list[Search]]]:
    """Tasks, each with its searches."""
    found: dict[str, tuple[ResearchTask, list[Search]]] = {}
    for row in tasks:
        task = task_of(row)
        found[task.id] = (task, [])
    for row in searches:
        search = search_of(row)
        found[search.ref.task][1].append(search)
    return list(found.values())


class SearchPlan(NamedTuple):
    """The result of adding searches; `fresh` are those to be stored, by hash."""

    added: Added
    fresh: dict[str, Search]


def plan_searches(
    task: ResearchTask, there: Sequence[Row], new: Sequence[NewSearch], most: int, now: float
) -> SearchPlan:
    """`there` are all searches of the task: `search_columns` and hash. The task is locked."""
    by_hash = {row["hash"]: search_of(row) for row in there}
    by_id = {search.ref.id: search for search in by_hash.values()}
    added, fresh = Added([], []), dict[str, Search]()
    for one in new:
        id, hash = storable(one.id), hash_of(one.key)  # noqa: A001
        if id in by_id:
            if by_id[id] not in added.searches:
                added.searches.append(by_id[id])
        elif hash in by_hash:
            added.skipped.append(by_hash[hash])
        else:
            search = Search(
                ref=SearchRef(task.tenant, task.id, id),
                number=len(by_id) + 1,
                query=storable(one.query),
                limit=one.limit,
                priority=one.priority,
                providers=tuple(kept(one.providers)),
                state=SearchState.QUEUED,
                run=1,
                queued_at=now,
            )
            by_id[id] = by_hash[hash] = fresh[hash] = search
            added.searches.append(search)
    if fresh and len(by_id) > most:
        raise ValidationError(
            f"a task has at most {most} searches; this one has {len(there)} already, and"
            f" {len(fresh)} more were asked for"
        )
    return SearchPlan(added, fresh)


def _reply_of(row: Row) -> ProviderReply:
    return ProviderReply(
        **{name: row[name] for name in ("search", "provider", "skipped", "next", "error", "at")},
        done=bool(row["done"]),
        findings=tuple(_finding_of(one) for one in json.loads(row["findings"])),
    )


def _finding_values(finding: Finding) -> dict[str, Any]:
    return {field.name: kept(getattr(finding, field.name)) for field in fields(finding)}


def _finding_of(values: dict[str, Any]) -> Finding:
    return Finding(**(values | {"authors": tuple(values["authors"])}))


def reply_values(answer: ProviderReply) -> dict[str, Any]:
    """A reply, by column."""
    return {
        "provider": storable(answer.provider),
        "skipped": answer.skipped,
        "done": answer.done,
        "next": kept(answer.next),
        "error": kept(answer.error),
        "at": answer.at,
        "findings": json.dumps(
            [_finding_values(one) for one in answer.findings], ensure_ascii=False
        ),
    }


async def replies_of(rows: Sequence[Row]) -> list[ProviderReply]:
    """The replies in rows of `reply_columns`. They can be megabytes, which the event loop is not to
    read while others wait."""
    if not rows:
        return []
    return await runtime.in_thread(lambda: [_reply_of(row) for row in rows])


def page_of(row: Row) -> TaskPage:
    """The page in a row of `page_columns`."""
    return TaskPage(**{name: row[name] for name in _PAGE} | {"state": PageState(row["state"])})


class PagePlan(NamedTuple):
    """The result of asking for pages: `fresh` ones are to be stored, `again` ones wait once
    more."""

    granted: Granted
    fresh: list[TaskPage]
    again: list[TaskPage]


def plan_pages(
    ref: SearchRef,
    run: int,
    task: ResearchTask,
    there: Sequence[Row],
    asked: Sequence[NewPage],
    now: float,
) -> PagePlan:
    """`there` are those of `asked` that the task, which is locked, has: `page_columns` and run."""
    known = {row["key"]: (page_of(row), row["run"]) for row in there}
    plan = PagePlan(Granted([], [], []), [], [])
    first: dict[str, NewPage] = {}
    for one in asked:
        first.setdefault(storable(one.key), one)
    for key, new in first.items():
        if key not in known:
            used = task.pages + len(plan.fresh)
            if task.budget_pages is not None and used >= task.budget_pages:
                plan.granted.refused.append(new)
                continue
            page = TaskPage(task.id, ref.id, key, storable(new.url), PageState.WAITING, at=now)
            plan.fresh.append(page)
            plan.granted.pages.append(page)
            continue
        page, last_run = known[key]
        if page.search != ref.id:
            plan.granted.others.append(page)
            continue
        # Of the same run it stays failed: the search only asks once more what became of it.
        if page.state is PageState.FAILED and last_run < run:
            page = replace(page, state=PageState.WAITING, reason=None, at=now)
            plan.again.append(page)
        plan.granted.pages.append(page)
    return plan
