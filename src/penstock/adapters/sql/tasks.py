"""Research tasks in a database. Statements: `tasks.sql`; rows and rules: `task_rows.py`.

They promise:
- every row belongs to a tenant, and nothing of a task is read or changed without naming it;
- a query is in a task once, however often and by however many it is queued at a time: queries are
  compared by `key`;
- what a job brings is stored only while its `run` is that of its search (`Search.run`), checked in
  the same transaction; so after `restart` or `stop` a job of before is refused;
- no more pages are granted than the task's budget has, by any number of jobs at a time;
- storing the same twice changes nothing.

Times are those of the caller (`now`): the queue's clock, which deadlines of jobs are on.

Methods raise StoreUnavailable while the store cannot be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.adapters.sql.dialect import Row, Sql, SqlDatabase, StoreDatabase
from penstock.adapters.sql.task_rows import (
    by_task,
    clock_started,
    clock_stopped,
    hash_of,
    kept,
    page_of,
    plan_pages,
    plan_searches,
    replies_of,
    reply_values,
    search_of,
    search_values,
    task_of,
    task_values,
)
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
    Started,
    TaskRecord,
)


class TaskStore:
    """Usable while the store it is in is open."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = StoreDatabase(database)

    async def create(self, task: ResearchTask) -> ResearchTask:
        """Store a task; if there is one of this tenant and id, that one as it is."""
        values = task_values(task)

        async def create(tx: Sql) -> ResearchTask:
            await tx.execute("create_task", **values)
            return task_of(await tx.one("read_task", **_named(task.tenant, task.id)))

        return await self._database.write(create)

    async def get(self, tenant: str, task: str) -> ResearchTask | None:
        rows = await self._database.fetch("read_task", **_named(tenant, task))
        return task_of(rows[0]) if rows else None

    async def tasks(
        self, tenant: str, limit: int, before: str | None = None
    ) -> list[tuple[ResearchTask, list[Search]]]:
        """The newest first, with their searches; `before` is the id of the last one of the page
        before."""

        async def read(tx: Sql) -> tuple[list[Row], list[Row]]:
            if before is None:
                tasks = await tx.fetch("newest_tasks", tenant=kept(tenant), limit=limit)
            else:
                named = _named(tenant, before)
                last = await tx.one("read_task", **named)
                if last is None:
                    return [], []
                older = {"created_at": last["created_at"], "before": named["task"]}
                tasks = await tx.fetch("older_tasks", tenant=kept(tenant), limit=limit, **older)
            ids = [row["id"] for row in tasks]
            return tasks, await tx.fetch("searches_of_tasks", tenant=kept(tenant), tasks=ids)

        return by_task(*await self._database.read(read))

    async def add_searches(
        self, tenant: str, task: str, new: Sequence[NewSearch], most: int, now: float
    ) -> Added | None:
        """Add searches, all or none; None: there is no such task. ValidationError where the task
        would have over `most`. The first ones start the clock of `budget_seconds`."""
        named = _named(tenant, task)

        async def add(tx: Sql) -> Added | None:
            there = await _lock(tx, named)
            if there is None:
                return None
            rows = await tx.fetch("known_searches", **named)
            plan = plan_searches(there, rows, new, most, now)
            if plan.fresh:
                fresh = [search_values(*one) for one in plan.fresh.items()]
                await tx.execute_many("add_search", fresh)
            if plan.fresh and not rows:
                await _save(tx, clock_started(there, now))
            return plan.added

        return await self._database.write(add)

    async def record(self, tenant: str, task: str) -> TaskRecord | None:
        """All of a task, as of one moment."""
        named = _named(tenant, task)

        async def read(tx: Sql) -> tuple[Row | None, list[Row], list[Row], list[Row]]:
            return (
                await tx.one("read_task", **named),
                await tx.fetch("searches_of_task", **named),
                await tx.fetch("replies_of_task", **named),
                await tx.fetch("pages_of_task", **named),
            )

        there, searches, replies, pages = await self._database.read(read, long=True)
        if there is None:
            return None
        return TaskRecord(
            task_of(there),
            [search_of(row) for row in searches],
            await replies_of(replies),
            [page_of(row) for row in pages],
        )

    async def start(self, ref: SearchRef, run: int, now: float) -> Started | None:
        """The search begins, or goes on. None: it is not to be done (any more) in this run."""
        named = _of_run(ref, run, now=now)

        async def start(tx: Sql) -> tuple[Row, Row, list[Row], list[Row]] | None:
            await tx.execute("start_search", **named)
            search = await tx.one("running_search", **named)
            if search is None:
                return None
            return (
                await tx.one("read_task", **named),
                search,
                await tx.fetch("replies_of_search", **named),
                await tx.fetch("pages_of_search", **named),
            )

        # A power loss may take it: then the job is run again, and starts it again.
        started = await self._database.write(start, soft=True)
        if started is None:
            return None
        there, search, replies, pages = started
        found = await replies_of(replies)
        return Started(task_of(there), search_of(search), found, [page_of(page) for page in pages])

    async def answer(self, ref: SearchRef, run: int, answer: ProviderReply) -> bool:
        """Keep what a provider said, in place of what it said before. False: refused."""
        return await self._changes_one("keep_reply", _of_run(ref, run) | reply_values(answer))

    async def grant(
        self, ref: SearchRef, run: int, pages: Sequence[NewPage], now: float
    ) -> Granted | None:
        """Let a search read these pages, within the task's budget, in the order given. One that
        failed in an earlier run is to be tried again. None: refused."""
        named = _of_run(ref, run, now=now)

        async def grant(tx: Sql) -> Granted | None:
            there = await _lock(tx, named)
            if there is None or await tx.one("share_search", **named) is None:
                return None
            hashes = [hash_of(page.key) for page in pages]
            rows = await tx.fetch("known_pages", **named, hashes=hashes)
            plan = plan_pages(ref, run, there, rows, pages, now)
            if plan.fresh:
                fresh = [
                    {"number": number, "hash": hash_of(one.key), "key": one.key, "url": one.url}
                    for number, one in enumerate(plan.fresh, there.pages + 1)
                ]
                await tx.execute_many("grant_page", [named | one for one in fresh])
                await _save(tx, replace(there, pages=there.pages + len(plan.fresh)))
            if plan.again:
                again = [hash_of(page.key) for page in plan.again]
                await tx.execute("grant_pages_again", **named, hashes=again)
            return plan.granted

        return await self._database.write(grant)

    async def page(
        self,
        ref: SearchRef,
        run: int,
        key: str,
        state: PageState,
        now: float,
        *,
        collection: str | None = None,
        document: str | None = None,
        title: str = "",
        reason: str | None = None,
    ) -> bool:
        """What became of a page. False: refused."""
        known = {"collection": collection, "document": document, "title": title, "reason": reason}
        named = _of_run(ref, run, hash=hash_of(key), state=state.value, now=now, **known)
        return await self._changes_one("mark_page", named)

    async def finish(
        self, ref: SearchRef, run: int, state: SearchState, reason: str | None, now: float
    ) -> bool:
        """The search is completed or failed. False: refused."""
        named = _of_run(ref, run, state=state.value, reason=reason, now=now)

        async def finish(tx: Sql) -> bool:
            await tx.execute("finish_search", **named)
            return await tx.one("finished_search", **named) is not None

        return await self._database.write(finish)

    async def restart(self, ref: SearchRef, run: int) -> Search | None:
        """Another run of an unfinished search whose run is still `run`: queued, its run one
        greater. None: somebody was faster, or it is finished."""
        row = await self._database.write(lambda tx: tx.one("restart_search", **_of_run(ref, run)))
        return None if row is None else search_of(row)

    async def stop(self, tenant: str, task: str, now: float, *, refuse: bool) -> bool:
        """Stop the clock of the task. `refuse`: give every unfinished search another run, so that
        nothing its jobs bring is stored any more. False: there is no such task."""
        named = _named(tenant, task)

        async def stop(tx: Sql) -> bool:
            there = await _lock(tx, named)
            if there is None:
                return False
            await _save(tx, clock_stopped(there, now))
            if refuse:
                await tx.execute("refuse_searches", **named)
            return True

        return await self._database.write(stop)

    async def resume(self, tenant: str, task: str, now: float) -> bool:
        """Let the clock go on. False: there is no such task."""
        named = _named(tenant, task)

        async def resume(tx: Sql) -> bool:
            there = await _lock(tx, named)
            if there is None:
                return False
            if await tx.one("has_searches", **named) is not None:
                await _save(tx, clock_started(there, now))
            return True

        return await self._database.write(resume)

    async def unfinished(
        self, before: float, limit: int, after: SearchRef | None = None
    ) -> list[Search]:
        """Searches of all tenants that are queued or running and were queued before a time, in the
        order of their refs: what a reconciler looks through."""
        tenant, task, search = after or ("", "", "")
        named = _named(tenant, task, search=search, before=before, limit=limit)
        return [
            search_of(row) for row in await self._database.fetch("unfinished_searches", **named)
        ]

    async def seconds_taken(self, tenant: str, last: int) -> float | None:
        """How long the last searches of a tenant took from start to finish, on average (of the
        `last` newest completed ones); None: none has yet."""
        ((seconds,),) = await self._database.fetch("seconds_taken", tenant=kept(tenant), last=last)
        return None if seconds is None else float(seconds)

    async def _changes_one(self, statement: str, values: dict[str, Any]) -> bool:
        return await self._database.write(lambda tx: tx.execute(statement, **values)) == 1


def _named(tenant: str, task: str, **values: Any) -> dict[str, Any]:
    """Values of a statement."""
    named: dict[str, Any] = kept({"tenant": tenant, "task": task, **values})
    return named


def _of_run(ref: SearchRef, run: int, **values: Any) -> dict[str, Any]:
    return _named(ref.tenant, ref.task, search=ref.id, run=run, **values)


async def _lock(tx: Sql, named: dict[str, Any]) -> ResearchTask | None:
    row = await tx.one("lock_task", **named)
    return None if row is None else task_of(row)


async def _save(tx: Sql, task: ResearchTask) -> None:
    changing = {"pages": task.pages, "ends_at": task.ends_at, "seconds_left": task.seconds_left}
    await tx.execute("save_task", tenant=task.tenant, task=task.id, **changing)
