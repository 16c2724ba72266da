"""Jobs in transactions of callers are looked for, and not without end."""

import asyncio
import json
import sqlite3
from collections.abc import Callable

from penstock.adapters.sqlite.commit_watch import MOST, CommitWatch
from penstock.ports.queue import Topic
from tests.support.waiting import until


async def test_a_transaction_with_many_jobs_is_looked_for_by_a_few_of_them() -> None:
    file = sqlite3.connect(":memory:")
    file.execute("CREATE TABLE jobs (id TEXT)")
    asked: list[int] = []
    rung: set[Topic] = set()

    class Noting:
        def execute(self, statement: str, values: tuple[str]) -> sqlite3.Cursor:
            asked.append(len(json.loads(values[0])))
            return file.execute(statement, values)

    async def read(look: Callable[[sqlite3.Connection], set[str]]) -> set[str]:
        await asyncio.sleep(0)
        return look(Noting())  # type: ignore[arg-type]

    watch = CommitWatch(read, rung.update)
    watch.expect("0", {Topic.FINISHED})
    for number in range(1, 10 * MOST):
        watch.expect(str(number), {Topic.READY})
    await until(lambda: len(asked) > 1, "looks")
    assert max(asked) == MOST
    assert rung == set()
    file.executemany("INSERT INTO jobs VALUES (?)", [[str(n)] for n in range(10 * MOST)])
    await until(lambda: bool(rung), "the commit")
    assert rung == {Topic.READY, Topic.FINISHED}, "also those of jobs that were not looked for"
    await watch.close()
