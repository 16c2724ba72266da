"""Handlers of jobs, by kind."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypedDict

from penstock.engine.arguments import Arguments
from penstock.engine.retry import Backoff, OwnBackoff, backoff_of
from penstock.errors import ConfigError, PenstockError, ValidationError
from penstock.model.job import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT
from penstock.model.settings import EngineConfig
from penstock.ports.queue import NO_LANE

if TYPE_CHECKING:
    from penstock.engine.schedule import Periodic
    from penstock.model.amounts import AmountValue

KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")


def check_kind(kind: Any) -> None:
    if not isinstance(kind, str) or not KIND.fullmatch(kind):
        raise ConfigError(
            f"{kind!r} is not a valid kind: use up to 128 letters, digits, '_', '.', ':' and '-', "
            "starting with a letter"
        )


def check_limits(
    whose: str, timeout: Any, max_retries: Any, error: type[PenstockError] = ConfigError
) -> None:
    """Refuse what no run can be bounded by."""
    if not isinstance(timeout, int | float) or not 0 < timeout <= 30 * 86400:
        raise error(f"timeout of {whose} must be over 0 s and at most 30 days")
    if not isinstance(max_retries, int) or not 0 <= max_retries <= 1000:
        raise error(f"max_retries of {whose} must be between 0 and 1000")


def _version(kind: str, version: Any) -> str:
    text = "" if version is None else str(version)
    if not isinstance(version, str | int | None) or len(text) > 100 or not text.isprintable():
        raise ConfigError(f"version of {kind!r} is a number or a short text, not {version!r}")
    return text


class HandlerOptions(TypedDict, total=False):
    """Options of `app.job` and `app.tool`; see `Penstock.job`."""

    timeout: float | None
    max_retries: int | None
    backoff: Backoff | None
    permanent: Iterable[type[BaseException]]
    lane: str | Callable[[dict[str, Any]], str] | None
    amount: AmountValue | Callable[[dict[str, Any]], AmountValue] | None
    max_per_process: int | None
    version: str | int | None


class JobOptions(HandlerOptions, total=False):
    """Options of `app.job`."""

    every: float | None
    cron: str | None
    timezone: str | None
    overlap: bool
    catch_up: float | None


@dataclass(slots=True, frozen=True)
class Handler:
    """A handler of one kind of job, with its options."""

    kind: str
    function: Callable[..., Any]
    is_async: bool
    timeout: float
    max_retries: int
    permanent: tuple[type[BaseException], ...]
    arguments: Arguments
    lane: str | Callable[[dict[str, Any]], str] | None
    periodic: Periodic | None
    max_per_process: int | None = None
    """Jobs of the kind that a process takes at a time, also those that wait in it; None: any
    number."""
    backoff: OwnBackoff | None = None
    """None: as the settings say."""
    version: str = ""
    """Records of steps that another version has made are discarded."""
    amount: AmountValue | Callable[[dict[str, Any]], AmountValue] | None = None
    """What a job reserves of what its lane counts."""

    @classmethod
    def of(
        cls,
        kind: str,
        function: Callable[..., Any],
        *,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_MAX_RETRIES,
        permanent: Iterable[type[BaseException]] = (),
        lane: str | Callable[[dict[str, Any]], str] | None = None,
        periodic: Periodic | None = None,
        max_per_process: int | None = None,
        backoff: Backoff | None = None,
        version: str | int | None = None,
        amount: AmountValue | Callable[[dict[str, Any]], AmountValue] | None = None,
    ) -> Handler:
        check_kind(kind)
        if not callable(function):
            raise ConfigError(f"the handler of {kind!r} is not a function")
        check_limits(repr(kind), timeout, max_retries)
        if max_per_process is not None and max_per_process < 1:
            raise ConfigError(f"max_per_process of {kind!r} must be at least 1")
        called = getattr(function, "__call__", None)  # noqa: B004 (it may be async, too)
        if any(
            inspect.isasyncgenfunction(one) or inspect.isgeneratorfunction(one)
            for one in (function, called)
        ):
            raise ConfigError(
                f"the handler of {kind!r} is a generator (it has a yield); return the result, and "
                "tell how far it is by ctx.progress"
            )
        is_async = any(map(inspect.iscoroutinefunction, (function, called)))
        arguments = Arguments(kind, function)
        if periodic is not None and arguments.required:
            raise ConfigError(
                f"{kind!r} is periodic, and a tick gives its handler no arguments: "
                f"{', '.join(sorted(arguments.required))} must have a default"
            )
        handler = cls(
            kind,
            function,
            is_async,
            float(timeout),
            int(max_retries),
            tuple(permanent),
            arguments,
            lane,
            periodic,
            max_per_process,
            None if backoff is None else backoff_of(kind, backoff),
            _version(kind, version),
            amount,
        )
        if periodic is not None:
            handler.lane_of({})  # raises now, and not at each tick
        return handler

    @property
    def built_in(self) -> bool:
        """Whether it does a job of our own, whose errors may quote a document."""
        module: str | None = getattr(self.function, "__module__", None)
        return (module or "").startswith("penstock.")

    def lane_of(self, payload: dict[str, Any]) -> str:
        """The lane of a job with this payload; '' for none."""
        if self.lane is None:
            return NO_LANE
        try:
            name: Any = self.lane(payload) if callable(self.lane) else self.lane
        except Exception as error:
            raise ValidationError(
                f"the lane of a {self.kind!r} job cannot be computed: {error!r}"
            ) from error
        if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
            raise ValidationError(f"the lane of a {self.kind!r} job cannot be {name!r}")
        return name

    def lane_of_text(self, payload: str) -> str:
        return self.lane_of(json.loads(payload))

    def amount_of_text(self, payload: str) -> str:
        from penstock.engine.amounts import amount_of

        return amount_of(self, json.loads(payload))


class Handlers(Mapping[str, Handler]):
    """The handlers of a process. Plain functions are taken with the default options."""

    def __init__(
        self,
        handlers: Mapping[str, Handler | Callable[..., Any]] | None = None,
        settings: EngineConfig | None = None,
    ) -> None:
        self.settings = settings
        """What an orchestrator made for these handlers goes by, unless told otherwise."""
        self._handlers: dict[str, Handler] = {}
        for kind, handler in (handlers or {}).items():
            self.add(handler if isinstance(handler, Handler) else Handler.of(kind, handler))

    def add(self, handler: Handler) -> None:
        if handler.kind in self._handlers:
            raise ConfigError(f"kind {handler.kind!r} already has a handler")
        self._handlers[handler.kind] = handler

    def matching(self, patterns: Iterable[str]) -> Handlers:
        """Only the kinds that match one of `patterns` ('ingest.*')."""
        patterns = list(patterns)
        chosen = Handlers(
            {
                kind: handler
                for kind, handler in self._handlers.items()
                if any(fnmatchcase(kind, pattern) for pattern in patterns)
            },
            self.settings,
        )
        if not chosen:
            raise ConfigError(
                f"no kind matches {', '.join(patterns)}; registered: "
                f"{', '.join(sorted(self._handlers)) or 'none'}"
            )
        return chosen

    def prepare(self) -> None:
        """Do now what would hold up the first jobs."""
        for handler in self._handlers.values():
            handler.arguments.prepare()

    def __getitem__(self, kind: str) -> Handler:
        return self._handlers[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)
