"""The site's tasks."""

from typing import Any

from django.db import connection

from penstock.contrib.django.interface import tasks

task: Any = tasks().task


class Refused(Exception):
    """An error of the site's own."""


@task
def add(a: int, b: int) -> int:
    return a + b


@task(queue_name="mail", priority=5)
def send(to: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO sent VALUES (%s)", [to])
    return [to]


@task
async def later(text: str) -> str:
    return text.upper()


@task(takes_context=True)
def attempt(context: Any) -> list[Any]:
    return [context.attempt, context.task_result.id]


@task
def fail() -> None:
    raise Refused("by the task")
