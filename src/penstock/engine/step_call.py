"""One call of a step: what identifies it, and how its function is called."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock import runtime
from penstock.engine.run import Run
from penstock.engine.thread_call import ThreadCall
from penstock.errors import ConfigError, ValidationError
from penstock.model.payload import encode_step
from penstock.model.step import short_hash

NAME_LIMIT = 200

current_key: ContextVar[str | None] = ContextVar("penstock_step", default=None)
"""The key of the step whose function runs here."""

Invoke = Callable[[], Awaitable[Any]]
"""Calls the function of a step."""


@dataclass(slots=True, frozen=True)
class StepCall:
    """A step as a handler has called it."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    arguments_hash: str
    occurrence: int
    key: str
    """See `penstock.model.step.step_key`."""
    lane: str | None
    retries: int
    timeout: float | None
    strict: bool
    transaction: bool = False

    @property
    def counted(self) -> bool:
        """Whether it is noted before each attempt that it is made."""
        return self.retries > 0 or self.strict

    def call(self) -> Any:
        """Call the function where this is called."""
        return self.function(*self.arguments)


def check_text(what: str, text: Any) -> None:
    """ValidationError if it cannot be the name of a step or signal, or the key of one."""
    if not isinstance(text, str) or not 0 < len(text) <= NAME_LIMIT or not text.isprintable():
        raise ValidationError(
            f"{what} is a text of 1 to {NAME_LIMIT} printable characters, not {text!r}"
        )


def check_options(name: Any, function: Any, lane: Any, retries: Any, timeout: Any) -> None:
    """ValidationError if they are no options of a step."""
    if callable(name):
        raise ValidationError(f"the first argument of ctx.step is its name, not {name!r}")
    check_text("the name of a step", name)
    if lane is not None:
        check_text("the lane of a step", lane)
    if not callable(function):
        raise ValidationError(f"step {name!r} needs a function to call, not {function!r}")
    if not isinstance(retries, int) or not 0 <= retries <= 1000:
        raise ValidationError(f"retries of step {name!r} must be between 0 and 1000")
    if timeout is not None and (not isinstance(timeout, int | float) or timeout <= 0):
        raise ValidationError(f"timeout of step {name!r} must be over 0 s")


def check_transaction(name: str, function: Callable[..., Any], possible: bool) -> None:
    """ConfigError if the queue has no transactions to share; ValidationError if the function cannot
    use one."""
    if not possible:
        raise ConfigError(
            f"step {name!r}: transaction=True is for a queue in PostgreSQL, where effect and "
            "record can be one commit; elsewhere use ctx.step_key"
        )
    if not is_async(function):
        raise ValidationError(
            f"step {name!r}: with transaction=True its function is async, and is given a connection"
        )


def hash_arguments(name: str, arguments: tuple[Any, ...]) -> str:
    """A hash of what the function is called with; ValidationError if it is not JSON."""
    return short_hash(encode_step(list(arguments), f"an argument of step {name!r}"))


def is_async(function: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(function):
        return True
    called = getattr(function, "__call__", None)  # noqa: B004 (it may be async, too)
    return inspect.iscoroutinefunction(called)


async def invoke_here(call: StepCall) -> Any:
    """Call the function from the event loop: a plain one in a thread, as handlers are."""
    if is_async(call.function):
        return await call.call()
    value, error = await ThreadCall(f"step-{call.name}", call.call).result
    if error is not None:
        raise error
    return await value if inspect.isawaitable(value) else value


def run_in_thread(
    call: StepCall,
    run: Run,
    loop: asyncio.AbstractEventLoop,
    step: Callable[[Invoke], Coroutine[Any, Any, Any]],
) -> Any:
    """Run a step from a handler's thread, and wait for it. A plain function is called in that very
    thread, where its handler's connections and the like belong; all else is the event loop's."""
    if is_async(call.function):
        return wait_for(run, loop, step(partial(invoke_here, call)))
    asked = runtime.thread_queue()

    async def invoke() -> Any:
        answer: asyncio.Future[Any] = loop.create_future()
        asked.put(answer)
        value, error = await answer
        if error is not None:
            raise error
        return value

    done = asyncio.run_coroutine_threadsafe(step(invoke), loop)
    done.add_done_callback(lambda _: asked.put(None))
    if run.calls is None:
        run.calls = set()
    run.calls.add(done)  # cancelled when the run is cut short
    token = current_key.set(call.key)
    try:
        while (answer := asked.get()) is not None:
            if not answer.cancelled():
                loop.call_soon_threadsafe(_answer, answer, *_outcome(call))
        return done.result()
    finally:
        done.cancel()
        current_key.reset(token)
        run.calls.discard(done)


def _outcome(call: StepCall) -> tuple[Any, Exception | None]:
    try:
        return call.call(), None
    except Exception as error:  # as a value: a future refuses StopIteration
        return None, error


def _answer(answer: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if not answer.done():  # it took longer than its timeout
        answer.set_result((value, error))


def wait_for(run: Run, loop: asyncio.AbstractEventLoop, step: Coroutine[Any, Any, Any]) -> Any:
    """Wait in a thread for something on the event loop; no longer than the run lasts."""
    done = asyncio.run_coroutine_threadsafe(step, loop)
    if run.calls is None:
        run.calls = set()
    run.calls.add(done)
    try:
        # Until the run is cut short, which cancels it. In a thread that goes on all the same
        # nobody does.
        return runtime.thread_result(done, None if run.interrupted is None else max(0, run.left()))
    finally:
        run.calls.discard(done)
