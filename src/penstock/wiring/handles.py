"""Handles: handlers that are called as before, and enqueue jobs with checked arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    overload,
)

from penstock.engine.context import JobContext
from penstock.engine.enqueuer import EnqueueOptions
from penstock.errors import ValidationError

if TYPE_CHECKING:
    from penstock.app import Penstock
    from penstock.engine.handlers import Handler
    from penstock.wiring.job_ref import JobRef

Context = TypeVar("Context", contravariant=True)
P = ParamSpec("P")
R = TypeVar("R")


class HandleOptions(EnqueueOptions, total=False):
    """Options of `JobHandle.with_options`: those of `EnqueueOptions`, and these."""

    key: str | None
    """Idempotency key of the one job that is enqueued."""
    job_id: str | None
    """The id of the one job that is enqueued."""
    parent: JobContext[Any] | None
    """The context of a running job: what is enqueued is its child, as by `ctx.enqueue`."""
    detached: bool
    """A child that outlives its parent."""


class Payload(dict[str, Any], Generic[P]):
    """The arguments of one job, checked against the signature of its handler."""


class JobHandle(Generic[P, R]):
    """A handler as `@app.job` leaves it: the function itself when it is called, and beside that the
    means to enqueue jobs for it, with its arguments and its result as type checkers know them."""

    __name__: str
    __qualname__: str

    def __init__(self, app: Penstock, handler: Handler) -> None:
        itself: Any = self
        update_wrapper(itself, handler.function)
        self._app = app
        self._handler = handler
        self._options: dict[str, Any] = {}

    @property
    def kind(self) -> str:
        """The kind of its jobs."""
        return self._handler.kind

    @property
    def function(self) -> Callable[..., Any]:
        """The handler, as it was written."""
        return self._handler.function

    def payload(self, /, *args: P.args, **kwargs: P.kwargs) -> Payload[P]:
        """The arguments of one job, for `enqueue_many`: those of the handler without its context.
        ValidationError where they do not fit by place."""
        return Payload(self._handler.arguments.named(args, kwargs))

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobRef[R]:
        """Store a job with these arguments; once this returns it is never lost. See
        `Penstock.enqueue`, whose options are given by `with_options`."""
        payload = self.payload(*args, **kwargs)
        parent, options = self._enqueue_options()
        if parent is None:
            job = await self._app.enqueue(self.kind, payload, **options)
        else:
            job = await parent.enqueue(self.kind, payload, **options)
        return self.ref(job.id)

    async def enqueue_many(
        self, payloads: Iterable[Payload[P]], *, keys: Sequence[str | None] | None = None
    ) -> list[JobRef[R]]:
        """Store many jobs, up to 10,000 in one transaction:
        `await resize.enqueue_many(resize.payload(url=url) for url in urls)`. `keys` has one for
        each, or None."""
        parent, options = self._enqueue_options()
        if options.keys() & {"key", "job_id"}:
            raise ValidationError("key and job_id are of one job: give enqueue_many its keys=[...]")
        some = list(payloads)
        if parent is None:
            jobs = await self._app.enqueue_many(self.kind, some, keys=keys, **options)
        else:
            jobs = await parent.enqueue_many(self.kind, some, keys=keys, **options)
        return [self.ref(job.id) for job in jobs]

    def with_options(self, **options: Unpack[HandleOptions]) -> Self:
        """The same handle with these options for what it enqueues, beside those it has:
        `await resize.with_options(priority="high", key=url).enqueue(url=url)`."""
        if unknown := sorted(options.keys() - HandleOptions.__annotations__.keys()):
            raise TypeError(f"with_options has no option {', '.join(unknown)}")
        return self._with(_options={**self._options, **options})

    def on(self, app: Penstock) -> Self:
        """The same handle for another app that has the kind, as `app.on_queue` makes one."""
        return self._with(_app=app)

    def ref(self, job_id: str) -> JobRef[R]:
        """A job of this kind that has been enqueued before."""
        from penstock.engine.results import reader
        from penstock.wiring.job_ref import JobRef

        return JobRef(self._app, job_id, reader(self.kind, self.function))

    def _with(self, **attributes: Any) -> Self:
        other = object.__new__(type(self))  # `copy` would go by __reduce__
        vars(other).update(vars(self), **attributes)
        return other

    def _enqueue_options(self) -> tuple[JobContext[Any] | None, dict[str, Any]]:
        options = {name: value for name, value in self._options.items() if value is not None}
        parent = options.pop("parent", None)
        if parent is None and options.pop("detached", False):
            raise ValidationError("only a child can be detached: give parent=ctx too")
        if parent is not None and not isinstance(parent, JobContext):
            raise ValidationError(f"parent is the context of a running job, not {parent!r:.60}")
        if parent is not None and "job_id" in options:
            raise ValidationError("the id of a child follows from its parent: leave job_id out")
        return parent, options

    def __repr__(self) -> str:
        return f"<handle of {self.kind!r} jobs: {self.function!r}>"

    def __reduce__(self) -> str:
        return str(getattr(self, "__qualname__", self.kind))  # by name, as functions are pickled


class AsyncJobHandle(JobHandle[P, R], Generic[Context, P, R]):
    """The handle of an async handler."""

    def __init__(self, app: Penstock, handler: Handler) -> None:
        super().__init__(app, handler)
        if sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    async def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = await self.function(ctx, *args, **kwargs)
        return result


class SyncJobHandle(JobHandle[P, R], Generic[Context, P, R]):
    """The handle of a plain function."""

    def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.function(ctx, *args, **kwargs)
        return result


class Registration(Protocol):
    """The decorator that `@app.job(...)` gives."""

    @overload
    def __call__(  # type: ignore[overload-overlap] # a plain function may return a coroutine
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncJobHandle[Context, P, R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> SyncJobHandle[Context, P, R]: ...


def handle_of(app: Penstock, handler: Handler) -> Any:
    """The handle of a registered handler."""
    return (AsyncJobHandle if handler.is_async else SyncJobHandle)(app, handler)


def kind_of(function: Any) -> str:
    """The kind of a handler that was given none: its qualified name within its module, or within
    the function in which it is defined."""
    name: str = getattr(function, "__qualname__", "")
    return name.rpartition("<locals>.")[2]
