"""Goes through the interface of tasks as a site uses it, and says what it found: run by the tests.

`python -m tests.support.django_site.checks`, with the environment of `settings`.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from io import StringIO
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.support.django_site.settings"
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from penstock.contrib.django.interface import tasks  # noqa: E402
from tests.support.django_site import tasks as site  # noqa: E402

backend: Any = tasks().default_task_backend
exceptions: Any = tasks(".exceptions")
Invalid: Any = getattr(exceptions, "InvalidTask", None) or exceptions.InvalidTaskError
Status: Any = tasks().TaskResultStatus


def raises(error: type[BaseException], call: Any) -> bool:
    try:
        call()
    except error:
        return True
    return False


def is_there(result: Any) -> bool:
    return not raises(exceptions.TaskResultDoesNotExist, result.refresh)


def main() -> None:
    call_command("check", stdout=StringIO())
    assert backend.supports_defer
    assert backend.supports_priority
    assert backend.supports_async_task
    assert backend.supports_get_result
    worker("--drain")  # makes the queue, if it is in the database
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE sent (who varchar(40))")

    heard: list[str] = []
    tasks(".signals").task_enqueued.connect(
        lambda sender, task_result, **_: heard.append(task_result.id), weak=False
    )
    added = site.add.enqueue(1, b=2)
    assert (added.status, added.args, added.kwargs) == (Status.READY, [1], {"b": 2})
    assert heard == [added.id]
    assert added.enqueued_at.tzinfo is not None
    again = site.add.get_result(added.id)
    assert (again.id, again.task, again.is_finished) == (added.id, site.add, False)
    assert raises(ValueError, lambda: again.return_value)
    assert raises(exceptions.TaskResultMismatch, lambda: site.send.get_result(added.id))
    assert raises(exceptions.TaskResultDoesNotExist, lambda: backend.get_result("nobody"))
    assert raises(TypeError, lambda: site.add.enqueue(object(), 1))
    assert raises(Invalid, lambda: site.add.using(queue_name="other"))
    assert raises(Invalid, lambda: site.add.using(priority=101))

    with transaction.atomic():
        sent = site.send.enqueue("ada")
        raw("INSERT INTO sent VALUES ('row')")
        assert sent.status == Status.READY
    assert is_there(sent)
    with transaction.atomic():
        gone = site.send.enqueue("nobody")
        transaction.set_rollback(True)
    assert not is_there(gone)

    low = site.add.using(priority=-50).enqueue(5, 5)
    high = site.add.using(priority=50).enqueue(6, 6)
    due = site.add.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(7, 7)
    awaited = asyncio.run(site.later.aenqueue("async"))
    context, failed = site.attempt.enqueue(), site.fail.enqueue()
    connection.close()
    worker()

    for result in (added, sent, low, high, due, awaited, context, failed):
        result.refresh()
    assert asyncio.run(site.later.aget_result(awaited.id)).return_value == "ASYNC"
    assert (added.return_value, sent.return_value) == (3, ["ada"])
    assert context.return_value == [1, context.id]
    assert added.started_at <= added.finished_at
    assert added.attempts == 1
    assert high.started_at <= low.started_at
    assert (due.status, due.attempts) == (Status.READY, 0)
    assert failed.status == Status.FAILED
    assert failed.errors[0].exception_class is site.Refused
    assert "by the task" in failed.errors[0].traceback
    assert raises(ValueError, lambda: failed.return_value)
    with connection.cursor() as cursor:
        cursor.execute("SELECT who FROM sent ORDER BY who")
        found = [who for (who,) in cursor.fetchall()]
    print(json.dumps({"sent": found, "interface": tasks().__name__}))


def raw(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def worker(*arguments: str) -> None:
    """A worker process, which ends when it has nothing left to do that is due."""
    command = [sys.executable, "-m", "django", "penstock_worker", *arguments]
    with subprocess.Popen(command) as process:
        if "--drain" not in arguments:
            last = site.fail.enqueue()
            give_up = time.monotonic() + 200
            while not site.fail.get_result(last.id).is_finished:
                assert process.poll() is None
                assert time.monotonic() < give_up
                time.sleep(0.05)
            process.terminate()
        assert process.wait(200) == 0


if __name__ == "__main__":
    main()
