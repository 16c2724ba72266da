"""The functions that do jobs, by kind."""

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.engine.handlers import Handler, Handlers, check_kind
from penstock.errors import ConfigError


async def work(ctx: Any) -> None: ...


def plain(ctx: Any) -> None: ...


@pytest.mark.parametrize(
    "kind", ["a", "ingest.parse", "host:example.org", "_x", "A-b_c.9", "k" * 128]
)
def test_kind_is_a_name(kind: str) -> None:
    check_kind(kind)


@pytest.mark.parametrize(
    "kind", ["", " ", "9a", ".a", "a b", "a\n", "a*", "é", "k" * 129, None, 5, b"a", "a/b", "a'"]
)
def test_what_is_no_name_is_no_kind(kind: Any) -> None:
    with pytest.raises(ConfigError, match="is not a valid kind"):
        check_kind(kind)
    with pytest.raises(ConfigError, match="is not a valid kind"):
        Handlers({kind: work})


def test_plain_functions_get_the_default_options() -> None:
    handler = Handlers({"work": work})["work"]

    assert (handler.kind, handler.function, handler.is_async) == ("work", work, True)
    assert (handler.timeout, handler.max_retries, handler.permanent) == (60.0, 3, ())


def test_sync_and_async_are_told_apart() -> None:
    class Service:
        async def __call__(self, ctx: Any) -> None: ...

    assert not Handler.of("k", plain).is_async
    assert Handler.of("k", work).is_async
    assert Handler.of("k", Service()).is_async


def test_second_handler_of_a_kind_is_refused() -> None:
    handlers = Handlers({"work": work})

    with pytest.raises(ConfigError, match="'work' already has a handler"):
        handlers.add(Handler.of("work", plain))
    assert handlers["work"].function is work


def test_handler_that_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a function"):
        Handlers({"work": "work"})  # type: ignore[dict-item]


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 31 * 86400])
def test_impossible_timeout_is_refused(timeout: float) -> None:
    with pytest.raises(ConfigError, match="timeout of 'work'"):
        Handler.of("work", work, timeout=timeout)


@pytest.mark.parametrize("retries", [-1, 1001])
def test_impossible_number_of_retries_is_refused(retries: int) -> None:
    with pytest.raises(ConfigError, match="max_retries of 'work'"):
        Handler.of("work", work, max_retries=retries)


def test_options_are_kept() -> None:
    handler = Handler.of("work", work, timeout=5, max_retries=0, permanent=[KeyError])

    assert (handler.timeout, handler.max_retries, handler.permanent) == (5.0, 0, (KeyError,))


def test_handlers_are_a_mapping() -> None:
    handlers = Handlers({"b": work, "a": plain})

    assert list(handlers) == ["b", "a"]
    assert len(handlers) == 2
    assert "a" in handlers
    assert handlers.get("missing") is None


def test_matching_narrows_to_patterns() -> None:
    handlers = Handlers({"ingest.parse": work, "ingest.embed": work, "fetch.page": work})

    assert sorted(handlers.matching(["ingest.*"])) == ["ingest.embed", "ingest.parse"]
    assert sorted(handlers.matching(["fetch.page", "*.parse"])) == ["fetch.page", "ingest.parse"]
    assert len(handlers.matching(["*"])) == 3
    assert handlers.matching(["ingest.parse"])["ingest.parse"] is handlers["ingest.parse"]


def test_pattern_that_matches_nothing_is_refused_and_says_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"INGEST\.\*.*registered: ingest\.parse"):
        Handlers({"ingest.parse": work}).matching(["INGEST.*"])
    with pytest.raises(ConfigError, match="none"):
        Handlers().matching(["*"])


async def yields(ctx: Any) -> AsyncIterator[int]:
    yield 1


def yields_in_thread(ctx: Any) -> Iterator[int]:
    yield 1


class Yielding:
    async def __call__(self, ctx: Any):  # type: ignore[no-untyped-def]
        yield 1


@pytest.mark.parametrize(
    "function", [yields, yields_in_thread, Yielding(), functools.partial(yields)]
)
def test_generator_is_no_handler(function: Any) -> None:
    with pytest.raises(ConfigError, match=r"'work' is a generator.*ctx\.progress"):
        Handler.of("work", function)


@pytest.mark.parametrize("backoff", [-1, [], [1, "2"], float("nan"), "5", [1, 1e9]])
def test_impossible_backoff_is_refused(backoff: Any) -> None:
    with pytest.raises(ConfigError, match="backoff of 'work'"):
        Handler.of("work", work, backoff=backoff)


def test_without_a_kind_it_is_the_name_of_the_function() -> None:
    app = Penstock("sqlite:///none.db")

    @app.job
    async def shrink(ctx: Any, width: int) -> int:
        return width

    @app.job(timeout=5)
    def grow(ctx: Any) -> None: ...

    assert list(app.handlers) == ["shrink", "grow"]
    assert app.handlers["shrink"].function is shrink.function, "as it was written"
    assert (app.handlers["grow"].timeout, app.handlers["grow"].is_async) == (5, False)
    with pytest.raises(ConfigError, match="is not a valid kind"):
        app.job(lambda ctx: None)
