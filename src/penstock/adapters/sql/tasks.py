"""Research tasks in a database. Statements: `tasks.sql`; rows and rules: `task_rows.py`."""

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
    PageState,
    ProviderReply,
    ResearchTask,
    Search,
    SearchRef,
    SearchState,
    TaskRecord,
)
from penstock.ports.research import Added, Granted, NewPage, NewSearch, Started


class SqlTasks:
    """See `penstock.ports.research.TaskStore`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = StoreDatabase(database)

    async def create(self, task: ResearchTask) -> ResearchTask:
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
        return await self._changes_one("keep_reply", _of_run(ref, run) | reply_values(answer))

    async def grant(
        self, ref: SearchRef, run: int, pages: Sequence[NewPage], now: float
    ) -> Granted | None:
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
        known = {"collection": collection, "document": document, "title": title, "reason": reason}
        named = _of_run(ref, run, hash=hash_of(key), state=state.value, now=now, **known)
        return await self._changes_one("mark_page", named)

    async def finish(
        self, ref: SearchRef, run: int, state: SearchState, reason: str | None, now: float
    ) -> bool:
        named = _of_run(ref, run, state=state.value, reason=reason, now=now)

        async def finish(tx: Sql) -> bool:
            await tx.execute("finish_search", **named)
            return await tx.one("finished_search", **named) is not None

        return await self._database.write(finish)

    async def restart(self, ref: SearchRef, run: int) -> Search | None:
        row = await self._database.write(lambda tx: tx.one("restart_search", **_of_run(ref, run)))
        return None if row is None else search_of(row)

    async def stop(self, tenant: str, task: str, now: float, *, refuse: bool) -> bool:
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
        tenant, task, search = after or ("", "", "")
        named = _named(tenant, task, search=search, before=before, limit=limit)
        return [
            search_of(row) for row in await self._database.fetch("unfinished_searches", **named)
        ]

    async def seconds_taken(self, tenant: str, last: int) -> float | None:
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
