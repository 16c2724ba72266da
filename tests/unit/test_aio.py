"""Ending tasks, also those that do not want to."""

import asyncio

from penstock.aio import end_tasks


async def test_task_that_swallows_a_cancellation_is_ended_all_the_same() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed == 2:
                    raise

    async def failing() -> None:
        raise OSError("on its own")

    tasks = [asyncio.create_task(stubborn()), asyncio.create_task(failing())]
    await asyncio.sleep(0)
    await end_tasks(tasks)

    assert all(task.done() for task in tasks)
    assert swallowed == 2
    tasks[1].exception()


async def test_ending_nothing_is_nothing() -> None:
    await end_tasks([])
